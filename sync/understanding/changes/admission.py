"""What one device changes in the facts of another, and whether it may. Pure: decision 042."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sync.log.devices.device_view import DeviceView
from sync.understanding.fact_draft import FactDraft
from sync.understanding.model import AnswerKind, FactAnswer, FactStatus, RecordedStatement


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


class ChangeGuard:
    """Decide whether an item may change facts, and note what it changes, or would, in those of other devices."""

    def __init__(self, admitted: DeviceView) -> None:
        self._admitted = admitted
        self._changes: dict[str, ForeignChange] = {}  # by event
        self.withheld: set[str] = set()  # events

    def may_change(
        self, by: RecordedStatement | FactAnswer, changed: Sequence[FactDraft], *, after: str | None
    ) -> bool:
        """Whether an item may change these facts, of which the first is its own."""
        drafts = [draft for draft in changed if draft.devices != {by.device_id} or not by.is_proven]
        may = self._admitted.allows(by) if drafts else not self._admitted.refuses(by)
        self.withheld |= set() if may else {by.change_id}
        is_vital = any(draft.statement.is_vital for draft in drafts)
        if (not may or is_vital) and by.change_id not in self._admitted.answers:
            self._changes[by.change_id] = ForeignChange(
                event_id=by.change_id,
                device_id=by.device_id,
                is_proven=by.is_proven,
                recorded_at=by.recorded_at,
                kind="stated" if isinstance(by, RecordedStatement) else by.kind.value,
                fact_id=changed[0].first.fact_id,
                before=tuple(dict.fromkeys(draft.statement.text for draft in drafts)),
                after=after,
                is_vital=is_vital,
                waits=not may,
            )
        return may

    def open_changes(self, drafts: Mapping[str, FactDraft]) -> tuple[ForeignChange, ...]:
        """The changes that wait and would still have an effect, and those that hold."""
        return tuple(one for one in self._changes.values() if not one.waits or _is_open(one, drafts[one.fact_id]))


def _is_open(change: ForeignChange, draft: FactDraft) -> bool:
    match change.kind:
        case AnswerKind.RETRACTED | AnswerKind.REJECTED | AnswerKind.SUPERSEDED | AnswerKind.DOUBTED:
            return draft.status in (FactStatus.ACTIVE, FactStatus.CANDIDATE)
        case AnswerKind.QUESTIONED:
            return draft.status is FactStatus.ACTIVE and draft.questioned_by is None
        case AnswerKind.CONFIRMED:
            return draft.status is not FactStatus.ACTIVE or draft.questioned_by is not None
        case AnswerKind.EDITED:
            return draft.statement.text != change.after
    return draft.status is FactStatus.CANDIDATE or change.after not in (None, draft.statement.text)
