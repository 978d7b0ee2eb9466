"""Attacks that can be counted, bounded and replayed.

A campaign is a list of numbered cases. A case has chance of its own, seeded with the campaign's seed and its number:
so the same case comes again alone (`make fuzz ONLY=markdown SEED=7 AT=4711`) and a sample costs what it holds.
"""

import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SAMPLE_SEED: Final = 20260122  # of `make test`, which shall not find something new on an unlucky day


@dataclass(frozen=True, slots=True)
class FuzzCase:
    """One attack."""

    number: int
    chance: random.Random


class FuzzCases:
    """Run the cases of a campaign in order. `tick` is called after each that passes."""

    def __init__(self, name: str, seed: int, numbers: range, tick: Callable[[], None]) -> None:
        self.seed = seed
        self.at = numbers.start
        self._name = name
        self._numbers = numbers
        self._tick = tick

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[FuzzCase]:
        for number in self._numbers:
            self.at = number
            yield FuzzCase(number, random.Random(f"{self.seed}/{self._name}/{number}"))
            self._tick()


@dataclass(frozen=True, slots=True)
class Campaign:
    """`full`: cases in `make fuzz`; `sample`: in `make test`. `attack` raises if a case fails."""

    name: str
    full: int
    sample: int
    attack: Callable[[FuzzCases, Path], Awaitable[None]]

    async def run(self, seed: int, numbers: range, folder: Path, tick: Callable[[], None] = lambda: None) -> None:
        """These cases. What goes wrong bears a note that says how to see it again."""
        cases = FuzzCases(self.name, seed, numbers, tick)
        try:
            await self.attack(cases, folder)
        except BaseException as error:
            error.add_note(f"see it again: make fuzz ONLY={self.name} SEED={seed} AT={cases.at}")
            raise

    async def probe(self, folder: Path) -> None:
        """The sample of `make test`: cases spread over the whole campaign."""
        await self.run(SAMPLE_SEED, range(0, self.full, self.full // self.sample), folder)
