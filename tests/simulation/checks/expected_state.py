"""The expected state of a run: what was recorded, typed, removed and erased.

Every word is unique (`w17x`), so each can be searched in any database, file or server row. A *fact* is words that were
recorded; it belongs to the account that was logged in, or for a guest to the first account that logs in.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

WORD: Final = re.compile(r"w\d+x")
BASE64: Final = re.compile("(?:[A-Za-z0-9+/]{8}:)?[A-Za-z0-9+/]{42,}")  # random keys and signatures may hold a word
TOKEN: Final = "ghp_"  # what each planted secret begins with
TWO: Final = 2  # changes of one daily record, after which its text is unpredictable


def words_of(text: str) -> list[str]:
    return WORD.findall(BASE64.sub("", text))


@dataclass
class ExpectedFact:
    """Words that must not be lost. `event_id`: the acknowledged event; `step`: when it was recorded."""

    words: tuple[str, ...]
    device: str
    owner: str | None
    step: int
    event_id: str | None = None
    stays_here: bool = False
    must: bool = True
    shown: bool = True  # whether the document shows them
    record: str | None = None  # the daily record whose page shows them
    lesson_id: str | None = None  # that it corrects
    by_program: bool = False  # whether another program appended it


@dataclass
class EditorSave:
    """One save of an editor: the hash of its text, and what it added and removed.

    `before`: by database, the newest version that already had this hash.
    """

    digest: str = ""
    before: Mapping[Path, int] = field(default_factory=dict)
    facts: list[ExpectedFact] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)  # words
    removed: set[str] = field(default_factory=set)  # lines, by their first word
    changed: set[str] = field(default_factory=set)  # lines with other words now


class ExpectedState:
    """Everything that happened in a run, as the invariants need it."""

    def __init__(self) -> None:
        self._count = 0
        self.facts: list[ExpectedFact] = []
        self.taken: set[str] = set()  # words that were removed, or may have been
        self.removed: dict[str, set[str]] = {}  # permanently removed lines, and by which devices
        self.changed: dict[str, set[str]] = {}
        self.loose: set[str] = set()  # lines whose removal may be undone, by an edit or by a lost event
        self.secrets: list[str] = []
        self.forgotten: dict[str, set[str]] = {}  # by event: words whose erasure was requested, or may have been
        self.lines: set[str] = set()  # ids of the document lines of such events
        self.restated: set[str] = set()  # those of them that are recorded again, or elsewhere
        self.forged: set[str] = set()  # words that a hostile device puts in the place of others
        self.imported: defaultdict[str, set[str]] = defaultdict(set)  # by device: words of the archives
        self.claimed: defaultdict[str, set[str]] = defaultdict(set)  # of archives that the user said are their own
        self.records: dict[str, int] = {}  # daily records, and how often each was changed

    def new_word(self) -> str:
        self._count += 1
        return f"w{self._count}x"

    def new_sentence(self, count: int) -> str:
        return " ".join(self.new_word() for _ in range(count))

    def add(self, fact: ExpectedFact) -> ExpectedFact:
        self.facts.append(fact)
        return fact

    def owned_by(self, device: str, user: str) -> None:
        """The first account that logs in owns the guest's facts of that device."""
        for fact in self.facts:
            if fact.device == device and fact.owner is None:
                fact.owner = user

    def written(self, device: str, save: EditorSave) -> None:
        """A save is in the file, or with the program; it may be shown from now on."""
        self.taken |= save.taken
        for line in save.changed:
            self.changed.setdefault(line, set()).add(device)

    def save_seen(self, device: str, save: EditorSave) -> None:
        """The program has read a save: its additions must stay, its removals must hold."""
        for line in save.removed:
            self.removed.setdefault(line, set()).add(device)

    def save_unseen(self, save: EditorSave) -> None:
        """A save that was replaced before the program read it; nothing is expected of it."""
        for fact in save.facts:
            fact.must = False
        self.loose |= save.removed

    def profile_removed(self, device: str, owner: str | None) -> None:
        """An account's memory was removed from a device, with the facts that never leave it."""
        for fact in self.facts:
            if (fact.device, fact.owner, fact.stays_here) == (device, owner, True):
                fact.must = False

    def rolled_back(self, device: str, step: int, held: Iterable[str]) -> None:
        """A device was restored from a backup of that step; later facts survive only if they are in `held`."""
        elsewhere = set(held)
        for fact in self.facts:
            if fact.device == device and fact.step >= step:
                fact.shown, fact.record = False, None
                fact.must = fact.must and elsewhere.issuperset(fact.words or (fact.event_id,))
        self.loose |= {line for line, by in self.removed.items() if device in by}

    def expect_erased(self, erased: Mapping[str, set[str]]) -> None:
        """Note an erasure request for these events, with the words of each."""
        for event_id, words in erased.items():
            self.forgotten.setdefault(event_id, set()).update(words)
            self.taken |= words
        for fact in self.facts:
            if fact.event_id in erased and fact.record is not None:
                self.changes(fact.record, whole=True)

    def restate(self, text: str) -> None:
        """Note a text that is saved or sent: erased words in it are recorded again.

        Other words on the same line may be erased with the line.
        """
        forgotten = set().union(*self.forgotten.values())
        for line in text.split("\n") if forgotten else ():
            words = set(words_of(line))
            if words & forgotten:
                self.restated |= words & forgotten
                self.taken |= words
                self.loose.add(words_of(line)[0])  # the line may have been removed as well

    def erased_words(self, event_ids: Iterable[str]) -> set[str]:
        """The words that must be absent wherever the erasure of these events has arrived."""
        return set().union(*(self.forgotten.get(name, set()) for name in event_ids)) - self.restated

    def has_words(self, event_id: str) -> bool:
        return any(fact.event_id == event_id and fact.words for fact in self.facts)

    def changes(self, record_id: str, *, whole: bool = False) -> None:
        """Note a change of a daily record; after two its text is unpredictable. `whole`: this one replaces all."""
        self.records[record_id] = self.records.get(record_id, 0) + (TWO if whole else 1)
        for fact in self.facts if self.records[record_id] >= TWO else ():
            if fact.record == record_id:
                fact.record = None

    def record_of_event(self, record_id: str | None, event_id: str | None) -> str | None:
        """The daily record that shows what an event wrote into it.

        None if that is uncertain: another actor may have changed the record or requested the erasure of the event
        before its result arrived.
        """
        if record_id is not None and event_id in self.forgotten:
            self.changes(record_id, whole=True)
        return None if self.records.get(record_id or "", 0) >= TWO else record_id

    def owners(self) -> dict[str, str | None]:
        """The owner of each word."""
        return {word: fact.owner for fact in self.facts for word in fact.words}

    def required_facts(self) -> Iterator[ExpectedFact]:
        return (fact for fact in self.facts if fact.must)
