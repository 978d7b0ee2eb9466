"""A number that was measured, beside what it is judged by."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Measurement:
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

    @property
    def line(self) -> str:
        """For a terminal."""
        ratio = f"floor {figure(self.floor)}, ratio {self.ratio:.2f}" if self.floor and self.ratio else ""
        others = ", ".join(f"{name} {figure(value)}" for name, value in self.peers.items())
        measured = f"{self.name:<36} {figure(self.value):>8} {self.unit:<8} {ratio:<28} {others:<24} {self.target:<36}"
        return f"{measured} {'met' if self.met else 'MISSED'}"


def figure(value: float) -> str:
    """Three figures are what such a measurement is worth."""
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"
