"""A user with an editor: loads the memory file, adds, removes and rewords lines, and saves as editors do."""

import asyncio
import hashlib
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from sync.document.markdown.template import footer_line
from tests.simulation.checks.expected_state import EditorSave, ExpectedFact, ExpectedState, words_of

TORN_PAUSE: Final = 0.02  # seconds between two parts of a save in place; below what a stable read waits
PAUSE: Final = 2.5  # seconds between two parts of a save by a slow program
PIECES: Final = 4
FOOTER: Final = footer_line("")
REWORDED: Final = ("reword", "reword", "reword", "remove")  # what two surfaces do to the same line
Versions = Callable[[str], Mapping[Path, int]]  # as `Home.versions`


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class EditorUser:
    """The user of one device. `saved` is called with the path after each save."""

    def __init__(self, device: str, path: Path, expected: ExpectedState, saved: Callable[[Path], None]) -> None:
        self.device = device
        self.path = path
        self._expected = expected
        self._saved = saved
        self.buffer = ""
        self.whose: str | None = None  # the account whose document is in the buffer
        self.saves: list[EditorSave] = []
        self.saving = False

    def load(self, owner: str | None) -> bool:
        """Open the file, unless it is truncated."""
        with suppress(OSError, UnicodeDecodeError):
            text = self.path.read_text("utf-8")
            if FOOTER in text:
                if (
                    text != self.buffer
                ):  # otherwise it is this editor's own last save, whichever account is logged in now
                    self.buffer, self.whose = text, owner
                return True
        return False

    @property
    def lines(self) -> list[str]:
        """The lines in the buffer that contain words."""
        return [line for line in self.buffer.split("\n") if line.startswith("- ") and words_of(line)]

    def change(self, chance: random.Random, step: int, line: str | None = None) -> EditorSave | None:
        """Change the buffer, or one line of it; None if there is nothing to change."""
        lines = self.buffer.split("\n")
        places = [at for at, line in enumerate(lines) if line.startswith(("- ", "###"))]
        items = [at for at, line in enumerate(lines) if line.startswith("- ") and words_of(line)]
        if not places:
            return None
        save = EditorSave()
        kind = chance.choice(["add", "add", "add", "reword", "reword", "remove"] if line is None else REWORDED)
        if line is not None:
            items = [at for at in items if lines[at] == line]
        if kind == "add" or not items:
            return self.add(chance, step)
        if kind == "remove":
            gone = lines.pop(chance.choice(items))
            save.taken |= set(words_of(gone))
            save.removed.add(words_of(gone)[0])
        else:
            at = chance.choice(items)
            lines[at] = self._reword(lines[at], chance, save, step)
        self.buffer = "\n".join(lines)
        return save

    def add(self, chance: random.Random, step: int) -> EditorSave:
        """Add a line somewhere in the buffer."""
        save, lines = EditorSave(), self.buffer.split("\n")
        places = [at for at, line in enumerate(lines) if line.startswith(("- ", "###"))]
        text = self._expected.new_sentence(chance.randint(4, 7))
        lines.insert(chance.choice(places) + 1, f"- {text}")
        self._record_save(save, words_of(text), step)
        self.buffer = "\n".join(lines)
        return save

    def _reword(self, line: str, chance: random.Random, save: EditorSave, step: int) -> str:
        """A line with one word replaced, added or removed; its first word stays as its name."""
        save.changed.add(words_of(line)[0])
        parts = line.split(" ")
        first = next(at for at, part in enumerate(parts) if words_of(part)) + 1
        at = chance.randrange(first, len(parts)) if len(parts) > first else len(parts)
        gone = parts[at : at + 1]
        kind = chance.choice(["replace", "insert", "drop"]) if len(parts) > first + 1 else "insert"
        new = [] if kind == "drop" else [self._expected.new_word()]
        put = [*(gone if kind == "insert" else []), *new]
        save.taken |= {word for part in set(gone) - set(put) for word in words_of(part)}
        self._record_save(save, new, step)
        return " ".join([*parts[:at], *put, *parts[at + 1 :]])

    def _record_save(self, save: EditorSave, words: list[str], step: int) -> None:
        if words:
            save.facts.append(self._expected.add(ExpectedFact(tuple(words), self.device, self.whose, step)))

    async def save(
        self, change: EditorSave, versions: Versions, how: str, look: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Write the buffer. `look` is called after each part of a save with pauses."""
        unseen = self.check_saves_seen(versions)
        here = set(words_of(self.buffer))
        for fact in unseen:  # what the program never read and the buffer still has is saved again
            if here >= set(fact.words):
                fact.must = True
                change.facts.append(fact)
        data = self.buffer.encode()
        change.digest = digest_of(data)
        change.before = versions(change.digest)
        self.saves.append(change)
        self._expected.written(self.device, change)
        self.saving = True
        try:
            if how == "atomic":
                temporary = self.path.with_name(".editor.swp")
                temporary.write_bytes(data)
                os.replace(temporary, self.path)  # noqa: PTH105 - as any program does
            elif how == "torn":
                await self._save_in_parts(data, 2, TORN_PAUSE)
            elif how == "paused":
                await self._save_in_parts(data, PIECES, PAUSE, look)
            else:
                self.path.write_bytes(data)
        finally:
            self.saving = False
        self._saved(self.path)

    async def _save_in_parts(
        self, data: bytes, pieces: int, pause: float, look: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        size = -(-len(data) // pieces)
        with self.path.open("wb", buffering=0) as file:
            for at in range(0, len(data), size):
                file.write(data[at : at + size])
                self._saved(self.path)
                await asyncio.sleep(pause)
                if look is not None:
                    await look()

    def check_saves_seen(self, versions: Versions) -> list[ExpectedFact]:
        """Note which saves the program has read; return the facts of the others."""
        unseen: list[ExpectedFact] = []
        for save in self.saves:
            if any(newest > save.before.get(database, 0) for database, newest in versions(save.digest).items()):
                self._expected.save_seen(self.device, save)
            else:
                self._expected.save_unseen(save)
                unseen += save.facts
        self.saves.clear()
        return unseen
