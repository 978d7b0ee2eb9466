"""A number that was measured, beside what it is judged by."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One number. `floor`: the least (or, of a rate, the most) that was possible in the same run; `peers`: what others
    need for the same; `target` says what the design asks, `met` whether it is.
    """

    name: str
    value: float
    unit: str
    floor: float | None
    target: str
    met: bool
    peers: Mapping[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        return None if not self.floor else self.value / self.floor
