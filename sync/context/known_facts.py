"""What the facts about the user say about remembered texts. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sync.context.work_requests import is_about_work
from sync.recall.model import StoredItem
from sync.understanding.model import Fact, FactSection, FactStatus

OUTDATED: Final = frozenset({FactStatus.SUPERSEDED, FactStatus.RETRACTED})
MAX_EXTRA_CHARS: Final = 20  # of a text that says little more than a fact
WORK_SECTIONS: Final = frozenset({FactSection.TECHNICAL_PREFERENCES, FactSection.WORK_HABITS})


@dataclass(frozen=True)
class KnownFacts:
    """The facts of a profile, whatever their status. Kept while they do not change: there may be many."""

    facts: Sequence[Fact] = ()

    def is_outdated(self, item: StoredItem) -> bool:
        """Whether an item says what the user has replaced or taken back, and hardly anything else."""
        return any(
            fact.statement in item.text and len(item.text) <= len(fact.statement) + MAX_EXTRA_CHARS
            for fact in self._outdated_by_event.get(item.event_id, ())
        )

    @cached_property
    def _outdated_by_event(self) -> dict[str, list[Fact]]:
        found: dict[str, list[Fact]] = {}
        for fact in self.facts:
            if fact.status in OUTDATED:
                for event_id in {fact.fact_id, *fact.evidence}:
                    found.setdefault(event_id, []).append(fact)
        return found

    @cached_property
    def active_ids(self) -> frozenset[str]:
        return frozenset(fact.fact_id for fact in self.facts if fact.status is FactStatus.ACTIVE)

    def ids_about_work(self, message: str) -> tuple[str, ...]:
        """The active facts about how the user wants such work done, newest first."""
        active = [fact for fact in self.facts if fact.status is FactStatus.ACTIVE and fact.section in WORK_SECTIONS]
        about = (fact for fact in active if is_about_work(fact.statement, message))
        return tuple(fact.fact_id for fact in sorted(about, key=lambda fact: fact.valid_from, reverse=True))
