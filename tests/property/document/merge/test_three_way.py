"""An editor with a stale buffer and a program that keeps writing: no word is lost, and no removed word comes back.

Each case draws a history. The program records exchanges and changes lines; the editor saves a buffer that it loaded
some versions ago, and saves again without reloading. A word is lost if it was written and not removed; it comes back if
one side removed it and the other did not touch its line.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from sync.document.markdown.edits import edit_entry, insert_entry, remove_entry, set_footer
from sync.document.markdown.model import Entry, MergePlan, Snapshot, Version, normalised_text
from sync.document.markdown.parse import parse
from sync.document.markdown.template import TECHNICAL_PREFERENCES, empty_document
from sync.document.markdown.version_labels import day_label, next_label
from sync.document.merge.three_way import choose_base, looks_like_data_loss, plan_merge
from tests.proof import first_in_test
from tests.unit.document.examples import with_exchange

CASES = 300  # histories a profile; with four profiles and two saves each, 2,400 merges
AT_ONCE = 60
NOW = datetime(2026, 1, 8, 15, 49, 12)  # noqa: DTZ001
APPEND_HEAVY = {"add": 8, "edit": 1, "remove": 1}
EDIT_HEAVY = {"add": 2, "edit": 5, "remove": 3}


@dataclass
class EditorModel:
    """The versions, the editor's buffer, and what each side changed since the editor loaded or saved.

    A line is identified by its first word, which never changes.
    """

    chance: random.Random
    ring: list[Version] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.commit(Snapshot(parse(empty_document("2026/1/8 15:49:12"))))

    def word(self) -> str:
        self.count += 1
        return f"w{self.count}"

    def sentence(self) -> str:
        return " ".join(self.word() for _ in range(self.chance.randint(6, 9)))

    def ids(self) -> Iterator[str]:
        while True:
            yield f"e-{self.word()}"

    @property
    def current(self) -> Version:
        return self.ring[-1]

    def commit(self, snapshot: Snapshot) -> None:
        labelled = set_footer(snapshot, next_label(self.current.label if self.ring else None, NOW))
        self.ring.append(Version.of(len(self.ring), labelled))

    def ours(self, action: str) -> None:
        """One change by the program."""
        snapshot, ids = self.current.snapshot, self.ids()
        if action == "add":
            day = day_label(NOW.replace(day=self.chance.randint(1, 3)))
            if self.chance.random() < 0.3:
                entry = Entry(next(ids), f"- {self.sentence()}", TECHNICAL_PREFERENCES)
                self.commit(insert_entry(snapshot, entry, after=None))
            else:
                pair = (next(ids), next(ids))
                exchange = with_exchange(snapshot, day, self.sentence(), self.sentence(), pair)
                self.commit(exchange)
        elif snapshot.entries:
            entry = self.chance.choice(snapshot.entries)
            if action == "remove":
                self.commit(remove_entry(snapshot, entry.entry_id))
            else:
                self.commit(edit_entry(snapshot, entry.entry_id, self.reworded(entry.text)))

    def reworded(self, text: str) -> str:
        """Replace, insert or remove one word, except the first ones, which identify the line."""
        words = text.split(" ")
        at = self.chance.randrange(4, len(words))
        replacement = self.chance.choice([[self.word()], [words[at], self.word()], []])
        return " ".join([*words[:at], *replacement, *words[at + 1 :]])

    def typed(self, buffer: bytes, action: str) -> bytes:
        """One change by the editor to its buffer."""
        lines = buffer.decode().split("\n")
        items = [at for at, line in enumerate(lines) if line.startswith("- ") and "待补充" not in line]
        if action == "add" or not items:
            places = [at for at, line in enumerate(lines) if line.startswith(("- ", "###"))]
            lines.insert(self.chance.choice(places) + 1, f"- {self.sentence()}")
        elif action == "remove":
            del lines[self.chance.choice(items)]
        else:
            at = self.chance.choice(items)
            lines[at] = self.reworded(lines[at])
        return "\n".join(lines).encode()

    def save(self, data: bytes) -> MergePlan:
        """The editor saves, and the program ingests the file."""
        disk = parse(data)
        base = choose_base(disk, self.ring)
        assert not looks_like_data_loss(self.current, disk, base)
        ids = self.ids()
        made = plan_merge(base, self.current, disk, lambda: next(ids))
        self.ring.append(Version.of(len(self.ring), made.observed))
        if made.must_write:
            self.commit(made.merged)
        return made


def words_by_line(data: bytes) -> dict[str, set[str]]:
    """The words of every line by its first word."""
    found: dict[str, set[str]] = {}
    for block in parse(data).entries:
        words = [word for word in normalised_text(block.raw).replace("：", " ").split(" ") if word.startswith("w")]
        if words:
            found.setdefault(words[0], set()).update(words)
    return found


def check(base: bytes, ours: bytes, theirs: bytes, merged: bytes, flagged: bool) -> tuple[set[str], set[str]]:
    """The words that one merge lost, and those that it brought back."""
    before, here, there, after = (words_by_line(data) for data in (base, ours, theirs, merged))
    present = set().union(*after.values()) if after else set()
    must: set[str] = set()
    must_not: set[str] = set()
    for key in {*before, *here, *there}:
        was, mine, yours = before.get(key), here.get(key), there.get(key)
        if was is None:
            must |= (mine or set()) | (yours or set())
        elif mine is not None and yours is not None:
            must |= (mine & yours) | (mine - was) | (yours - was)
            must_not |= (was - mine) | (was - yours)
        elif mine is None and yours is None:
            must_not |= was
        else:
            survivor = yours if mine is None else mine
            assert survivor is not None
            (must if survivor != was else must_not).update(survivor)
    return must - present, set() if flagged else must_not & present - must


def history(seed: int, profile: dict[str, int], *, stale: bool) -> Iterator[tuple[set[str], set[str]]]:
    """What each save of a history lost and brought back; the second save has not loaded the merge."""
    world = EditorModel(random.Random(seed))

    def actions(most: int) -> list[str]:
        return world.chance.choices(list(profile), list(profile.values()), k=world.chance.randint(0, most))

    for _ in range(world.chance.randint(2, 6)):
        world.ours("add")
    buffer = world.current.snapshot.document.data
    for _ in range(2):
        base = buffer
        for action in actions(6) if stale else []:
            world.ours(action)
        ours = world.current.snapshot.document.data
        for action in actions(4):
            buffer = world.typed(buffer, action)
        made = world.save(buffer)
        merged = world.current.snapshot.document.data
        yield check(base, ours, buffer, merged, bool(made.conflicting_ids))
        again = plan_merge(choose_base(parse(merged), world.ring), world.current, parse(merged), lambda: "new")
        assert again.operations == ()
        assert not again.must_write
        if made.conflicting_ids:
            return  # two lines now begin with the same word


@pytest.mark.parametrize("first", first_in_test(range(0, CASES, AT_ONCE)))
@pytest.mark.parametrize("stale", [True, False], ids=["stale buffer", "fresh buffer"])
@pytest.mark.parametrize("profile", [APPEND_HEAVY, EDIT_HEAVY], ids=["append-heavy", "edit-heavy"])
def test_no_word_is_lost_and_none_comes_back(profile: dict[str, int], stale: bool, first: int) -> None:
    seeds = range(first, first + AT_ONCE)
    found = [(seed, *words) for seed in seeds for words in history(seed, profile, stale=stale)]
    assert len(found) > AT_ONCE
    assert [(seed, lost) for seed, lost, _ in found if lost] == []
    assert [(seed, back) for seed, _, back in found if back] == []
