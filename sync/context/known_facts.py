"""What the facts about the user say about remembered texts, and which of them answer a question. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from sync.context.work_requests import is_about_work
from sync.log.authorship import ANSWER
from sync.recall.dedup import ELLIPSES
from sync.recall.index.extraction import item_part
from sync.recall.model import StoredItem
from sync.understanding.model import TRUSTED, Fact, FactSection, FactStatus

MAX_EXTRA: Final = 12  # letters of a text that says little more than a fact; a Chinese character is two
MIN_CUT_CHARS: Final = 8  # of an outdated text at the end of a shortened one
_NOT_WORD: Final = re.compile(r"[\W_]+")
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

    def present_text(self, item: StoredItem) -> str:
        """What of an item still holds: without what the user has replaced, edited or taken back in it.

        Empty if hardly anything else is left.
        """
        text = _without(item.text, self.outdated_texts.get(item.event_id, ()))
        return text if text == item.text or size_of(text) > MAX_EXTRA else ""

    def is_outdated(self, item: StoredItem) -> bool:
        """Whether an item says what the user has replaced, edited or taken back, and hardly anything else.

        The answer to such a message is outdated too.
        """
        if item_part(item.item_id, item.kind) == ANSWER:
            return item.event_id in self.outdated_texts and item.event_id not in self.active_evidence
        return bool(item.text) and not self.present_text(item)

    def only_states_facts(self, event_id: str, text: str) -> bool:
        """Whether a message says facts, and hardly anything else."""
        stated = self._of_event.get(event_id, ())
        return bool(stated) and size_of(_without(text, (fact.statement for fact in stated))) <= MAX_EXTRA

    def stated_in(self, item: StoredItem) -> Sequence[Fact]:
        """The facts whose text an item is, or which it states."""
        return self._of_event.get(item.event_id, ())

    def newer(self, fact: Fact) -> Fact | None:
        """The fact that has replaced a fact, or questions it."""
        return self.by_id.get(fact.superseded_by or fact.questioned_by)

    def sources(self, item: StoredItem) -> frozenset[str]:
        """The events and entries that say what an item says.

        Of a fact also those that stated it, of a message that only states facts also these.
        """
        names = {item.event_id, *((item.entry_id,) if item.entry_id else ())}
        stated = self.stated_in(item)
        if stated and item.event_id not in stated[0].evidence:  # it is the fact
            names.update(stated[0].statement_ids, stated[0].evidence)
        elif self.only_states_facts(item.event_id, item.text):
            names.update(name for one in self._of_event[item.event_id] for name in one.statement_ids)
        return frozenset(names)

    @cached_property
    def by_id(self) -> Mapping[str | None, Fact]:
        return {fact.fact_id: fact for fact in self.facts}

    @cached_property
    def _of_event(self) -> Mapping[str, Sequence[Fact]]:
        """The facts by the events that have or state their texts."""
        found: dict[str, list[Fact]] = {}
        for fact in self.facts:
            for name in dict.fromkeys((self._text_event(fact), *fact.statement_ids, *fact.evidence)):
                found.setdefault(name, []).append(fact)
        return found

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


def _without(text: str, parts: Iterable[str]) -> str:
    """A text without these parts of it; of a shortened one the last may be cut."""
    for part in parts:
        if part not in text and text.endswith(ELLIPSES) and (at := text.find(part[:MIN_CUT_CHARS])) >= 0:
            text = text[:at]
        text = text.replace(part, "")
    return text


def size_of(text: str) -> int:
    """How much a text says, in Latin letters."""
    return sum(1 + ("\u3000" < letter <= "\u9fff") for letter in _NOT_WORD.sub("", text))
