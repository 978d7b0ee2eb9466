"""What the facts about the user say about remembered texts. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from sync.context.work_requests import is_about_work
from sync.recall.model import StoredItem
from sync.understanding.model import Fact, FactSection, FactStatus

MAX_EXTRA_CHARS: Final = 20  # of a text that says little more than a fact
WORK_SECTIONS: Final = frozenset({FactSection.TECHNICAL_PREFERENCES, FactSection.WORK_HABITS})


@dataclass(frozen=True)
class KnownFacts:
    """The facts of a profile, whatever their status. Kept while they do not change: there may be many."""

    facts: Sequence[Fact] = ()
    outdated_texts: Mapping[str, Collection[str]] = field(default_factory=dict)  # by event, as `Facts` has them

    def is_outdated(self, item: StoredItem) -> bool:
        """Whether an item says what the user has replaced, edited or taken back, and hardly anything else."""
        return any(
            text in item.text and len(item.text) <= len(text) + MAX_EXTRA_CHARS
            for text in self.outdated_texts.get(item.event_id, ())
        )

    @cached_property
    def active_ids(self) -> frozenset[str]:
        return frozenset(fact.fact_id for fact in self.facts if fact.status is FactStatus.ACTIVE)

    def ids_about_work(self, message: str) -> tuple[str, ...]:
        """The active facts about how the user wants such work done, newest first."""
        active = [fact for fact in self.facts if fact.status is FactStatus.ACTIVE and fact.section in WORK_SECTIONS]
        about = (fact for fact in active if is_about_work(fact.statement, message))
        return tuple(fact.fact_id for fact in sorted(about, key=lambda fact: fact.valid_from, reverse=True))
