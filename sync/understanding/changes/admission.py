"""What one device changes in the facts of another. Pure: decision 042."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForeignChange:
    """What an event of one device does, or would do, to facts of another one.

    `kind`: stated, or the kind of the answer. `fact_id`: the fact of the event itself. `before`: the texts that it ends
    or changes. `after`: the text that holds then; None if none does. `is_vital`: identity, health or safety.
    """

    event_id: str
    device_id: str
    is_proven: bool
    recorded_at: str
    kind: str
    fact_id: str
    before: tuple[str, ...]
    after: str | None
    is_vital: bool
    waits: bool
