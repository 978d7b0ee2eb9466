"""What the facts about the user say about remembered texts, and which of them answer a question. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from sync.context.work_requests import is_about_work
from sync.recall.model import StoredItem
from sync.understanding.model import TRUSTED, Fact, FactSection, FactStatus

MAX_EXTRA_CHARS: Final = 20  # of a text that says little more than a fact
WORK_SECTIONS: Final = frozenset({FactSection.TECHNICAL_PREFERENCES, FactSection.WORK_HABITS})


def _question(chinese: str, english: str) -> re.Pattern[str]:
    ask = r"(?:请问|告诉我|你(?:还)?(?:记得|知道)|(?:can you )?tell me |do you (?:know|remember) )?[,， ]*"
    chinese = rf"我(?:现在|目前|今年|到底)?(?:{chinese})[了的呢吗啊呀来着]*"
    return re.compile(rf"(?i){ask}(?:{chinese}|(?:{english})(?: now| again)?)[\s?？。!！]*")


# Questions that need share no word with their answer (我搬到上海了), by the slot of the fact.
_QUESTIONS: Final = {
    "name": _question(r"叫(?:什么(?:名字)?|啥)|的名字(?:是|叫)(?:什么|啥)", r"what(?:'s| is) my name|what my name is"),
    "age": _question(r"多大(?:年纪|岁数)?|几岁|多少岁", r"how old (?:am i|i am)"),
    "location": _question(
        r"(?:住|定居|生活)在?(?:哪[里儿]?|(?:哪个|什么)(?:城市|地方))|在(?:哪[里儿]?|(?:哪个|什么)(?:城市|地方))(?:住|生活)",
        r"where (?:do i|i) (?:currently )?live|where (?:am i|i am) (?:living|based)",
    ),
    "role": _question(
        r"是?做什么工作|是做什么|是?从事什么(?:工作|职业)|是什么职业|在哪里?(?:上班|工作)",
        r"what do i do for (?:a living|work)|what(?:'s| is) my (?:job|profession)|where do i work",
    ),
}


@dataclass(frozen=True)
class KnownFacts:
    """The facts of a profile, whatever their status. Kept while they do not change: there may be many."""

    facts: Sequence[Fact] = ()
    outdated_texts: Mapping[str, Collection[str]] = field(default_factory=dict)  # as `Facts` has them
    edit_events: Mapping[str, str] = field(default_factory=dict)

    def is_outdated(self, item: StoredItem) -> bool:
        """Whether an item says what the user has replaced, edited or taken back, and hardly anything else."""
        return any(
            text in item.text and len(item.text) <= len(text) + MAX_EXTRA_CHARS
            for text in self.outdated_texts.get(item.event_id, ())
        )

    @cached_property
    def rejected_ids(self) -> frozenset[str]:
        """The statements of others that the user has rejected: they were never the user's words."""
        return frozenset(
            name
            for fact in self.facts
            if fact.status is FactStatus.RETRACTED and fact.origin not in TRUSTED
            for name in fact.statement_ids
        )

    @cached_property
    def active_evidence(self) -> frozenset[str]:
        """The exchanges in which the active facts were stated."""
        return frozenset(name for fact in self.facts if fact.status is FactStatus.ACTIVE for name in fact.evidence)

    @cached_property
    def active_ids(self) -> frozenset[str]:
        """The events that have the texts of the active facts."""
        return frozenset(self._text_event(fact) for fact in self.facts if fact.status is FactStatus.ACTIVE)

    def ids_about_work(self, message: str) -> tuple[str, ...]:
        """The active facts about how the user wants such work done, newest first."""
        active = [fact for fact in self.facts if fact.status is FactStatus.ACTIVE and fact.section in WORK_SECTIONS]
        about = (fact for fact in active if is_about_work(fact.statement, message))
        return tuple(self._text_event(fact) for fact in sorted(about, key=lambda fact: fact.valid_from, reverse=True))

    def ids_answering(self, message: str) -> tuple[str, ...]:
        """The active facts that answer a question for the user's name, age, place or work."""
        question = message.strip()
        slot = next((slot for slot, pattern in _QUESTIONS.items() if pattern.fullmatch(question)), None)
        if slot is None:
            return ()
        active = (fact for fact in self.facts if fact.status is FactStatus.ACTIVE and fact.subject == "user")
        return tuple(self._text_event(fact) for fact in active if fact.slot == slot)

    def _text_event(self, fact: Fact) -> str:
        return self.edit_events.get(fact.fact_id, fact.fact_id)
