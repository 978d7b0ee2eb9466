"""What was said, typed and taken away: the model that a history is held against.

Every word is unique (`w17x`), so each can be looked for in any database, file or server row afterwards. A *fact* is
words that somebody put somewhere; it belongs to the account that was logged in, or to the first one to log in where
nobody was.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

WORD: Final = re.compile(r"w\d+x")
BASE64: Final = re.compile(
    "[A-Za-z0-9+/]{42,}="
)  # keys and signatures are random: letters in them may look like a word
TOKEN: Final = "ghp_"  # what each planted secret begins with
TWO: Final = 2  # changes of one daily record, after which nobody can know what it says


def words_of(text: str) -> list[str]:
    return WORD.findall(BASE64.sub("", text))


@dataclass
class ExpectedFact:
    """Words that must not be lost. `event_id`: of an acknowledged event; `step`: when it was."""

    words: tuple[str, ...]
    device: str
    owner: str | None
    step: int
    event_id: str | None = None
    stays_here: bool = False
    must: bool = True
    shown: bool = True  # whether the document shows them
    record: str | None = None  # the daily record whose page shows them


@dataclass
class EditorSave:
    """One save of an editor: the hash of what it wrote, what it added and what it took away.

    `before`: by database, the newest version that had this hash already, as where a line is taken out again.
    """

    digest: str = ""
    before: Mapping[Path, int] = field(default_factory=dict)
    facts: list[ExpectedFact] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)  # words
    removed: set[str] = field(default_factory=set)  # lines, by their first word
    changed: set[str] = field(default_factory=set)  # lines with other words now


class ExpectedState:
    """Everything that happened, for the oracle."""

    def __init__(self) -> None:
        self._count = 0
        self.facts: list[ExpectedFact] = []
        self.taken: set[str] = set()  # words that somebody took away, or may have
        self.removed: dict[str, set[str]] = {}  # lines that were taken away for good, and by which devices
        self.changed: dict[str, set[str]] = {}
        self.loose: set[str] = set()  # lines whose removal may be undone: brought back by hand, or lost on the way
        self.secrets: list[str] = []
        self.forgotten: dict[str, set[str]] = {}  # by event: words that somebody wished to forget, or may have
        self.lines: set[str] = set()  # of the document, by their ids: those of such events
        self.anew: set[str] = set()  # those of them that somebody says anew, or had said elsewhere
        self.records: dict[str, int] = {}  # daily records, and how often somebody has changed each

    def new_word(self) -> str:
        self._count += 1
        return f"w{self._count}x"

    def new_sentence(self, count: int) -> str:
        return " ".join(self.new_word() for _ in range(count))

    def add(self, fact: ExpectedFact) -> ExpectedFact:
        self.facts.append(fact)
        return fact

    def owned_by(self, device: str, user: str) -> None:
        """The first to log in takes what a guest has said on that device."""
        for fact in self.facts:
            if fact.device == device and fact.owner is None:
                fact.owner = user

    def save_seen(self, device: str, save: EditorSave) -> None:
        """The program has seen a save: what it added must stay, what it took away must stay away."""
        for line in save.removed:
            self.removed.setdefault(line, set()).add(device)
        for line in save.changed:
            self.changed.setdefault(line, set()).add(device)

    def save_unseen(self, device: str, save: EditorSave) -> None:
        """A save that the next one replaced before the program looked: nobody can know its words."""
        for fact in save.facts:
            fact.must = False
        self.loose |= save.removed
        for line in save.changed:
            self.changed.setdefault(line, set()).add(device)

    def profile_removed(self, device: str, owner: str | None) -> None:
        """A person took an account's memory off a device: what never leaves a device is gone with it."""
        for fact in self.facts:
            if (fact.device, fact.owner, fact.stays_here) == (device, owner, True):
                fact.must = False

    def rolled_back(self, device: str, step: int, held: Iterable[str]) -> None:
        """A device was restored from a backup of that step: what came later lives on only where `held` has it."""
        elsewhere = set(held)
        for fact in self.facts:
            if fact.device == device and fact.step >= step:
                fact.shown, fact.record = False, None
                fact.must = fact.must and elsewhere.issuperset(fact.words or (fact.event_id,))
        self.loose |= {line for line, by in self.removed.items() if device in by}

    def expect_erased(self, said: Mapping[str, set[str]]) -> None:
        """Somebody wishes these events gone, with the words that each says."""
        for event_id, words in said.items():
            self.forgotten.setdefault(event_id, set()).update(words)
            self.taken |= words
        for fact in self.facts:
            if fact.event_id in said and fact.record is not None:
                self.changes(fact.record, whole=True)

    def restate(self, text: str) -> None:
        """Somebody saves or sends this: what it still has of what was forgotten is said again.

        What stands on one line with it may go with the line: it was said there.
        """
        forgotten = set().union(*self.forgotten.values())
        for line in text.split("\n") if forgotten else ():
            words = set(words_of(line))
            if words & forgotten:
                self.anew |= words & forgotten
                self.taken |= words
                self.loose.add(words_of(line)[0])  # it had been taken away as well, perhaps

    def erased_words(self, event_ids: Iterable[str]) -> set[str]:
        """Words that must be nowhere where it is known that these events are to be forgotten."""
        return set().union(*(self.forgotten.get(name, set()) for name in event_ids)) - self.anew

    def has_words(self, event_id: str) -> bool:
        return any(fact.event_id == event_id and fact.words for fact in self.facts)

    def changes(self, record_id: str, *, whole: bool = False) -> None:
        """Somebody changes a daily record: of two who do, one may take away what the other wrote; `whole`: one does."""
        self.records[record_id] = self.records.get(record_id, 0) + (TWO if whole else 1)
        for fact in self.facts if self.records[record_id] >= TWO else ():
            if fact.record == record_id:
                fact.record = None

    def record_of_event(self, record_id: str | None, event_id: str | None) -> str | None:
        """The daily record that shows what an event wrote into it.

        None where it cannot be relied on: whoever saw the event before its answer came may have changed the record, or
        wished the event gone, by now.
        """
        if record_id is not None and event_id in self.forgotten:
            self.changes(record_id, whole=True)
        return None if self.records.get(record_id or "", 0) >= TWO else record_id

    def owners(self) -> dict[str, str | None]:
        """Whose each word is."""
        return {word: fact.owner for fact in self.facts for word in fact.words}

    def expected(self) -> Iterator[ExpectedFact]:
        return (fact for fact in self.facts if fact.must)
