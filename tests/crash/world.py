"""One point's world: a home, what was said and typed in it, a sidecar that dies on the way, and what must hold then."""

import contextlib
import os
import queue
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sync.files import ASIDE
from tests.acceptance.world import Server, exchanges, holding, integrity, level, questions, reaching, reaching_nobody
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import ANSWER_WITHIN, Home, Sidecar, eventually

CHILD: Final = (sys.executable, "-m", "tests.crash.child")
LOOK_EVERY: Final = 0.02  # seconds between looks whether the process is still there


class Died(Exception):
    """The process has ended, as it was told to."""


class Doomed(Sidecar):
    """A sidecar that ends at its step; whoever waits for it hears of it at once, by Died."""

    def wait(self, number: int, within: float = ANSWER_WITHIN) -> Any:
        deadline = time.monotonic() + within
        while True:
            alive = self._reader.is_alive()
            try:
                return super().wait(number, LOOK_EVERY if alive else 0)
            except TimeoutError:
                if not alive:
                    raise Died from None
                if time.monotonic() > deadline:
                    raise

    def send(self, method: str, **params: Any) -> int:
        try:
            return super().send(method, **params)
        except OSError:
            raise Died from None

    def eventually(self, look: Callable[[], object], within: float = ANSWER_WITHIN) -> None:
        deadline = time.monotonic() + within
        while not look():
            if self.process.poll() is not None:
                raise Died
            assert time.monotonic() < deadline, f"it never happened; see {self.home.folder / 'stderr.log'}"
            time.sleep(LOOK_EVERY)  # a pause between looks, not a wait for an effect

    def _read(self) -> None:
        with contextlib.suppress(ValueError):  # half an answer is no answer
            super()._read()


@dataclass
class World:
    """What a scenario works in."""

    folder: Path
    cloud: Cloud | None
    new_user: Callable[[], User] | None
    ahead: bool = False  # the program that runs here knows one schema more
    settings: dict[str, str] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[str, str] = field(default_factory=dict)
    typed: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)  # words that stand nowhere on the disk any more, as was answered
    notes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home = Home(self.folder / "home", **self.settings)
        if self.cloud is not None:
            self.online()

    @property
    def file(self) -> Path:
        return self.home.file

    @property
    def text(self) -> str:
        return self.file.read_text("utf-8") if self.file.exists() else ""

    def online(self) -> None:
        assert self.cloud is not None
        self.home.settings |= reaching(self.cloud)

    def offline(self) -> None:
        self.home.settings |= reaching_nobody()

    def user(self, name: str) -> User:
        if name not in self.users:
            assert self.new_user is not None
            self.users[name] = self.new_user()
        return self.users[name]

    def server(self, name: str) -> Server:
        assert self.cloud is not None
        return Server(self.cloud, self.user(name).user_id)

    def sidecar(self) -> Sidecar:
        """One that lives."""
        return Sidecar(self.home, command=[*CHILD, "--ahead"]) if self.ahead else Sidecar(self.home)

    def doomed(self, *flags: str) -> Doomed:
        ahead = ["--ahead"] if self.ahead else []
        return Doomed(self.home, command=[*CHILD, *ahead, *flags])

    def log_in(self, sidecar: Sidecar, name: str) -> None:
        user = self.user(name)
        sidecar.log_in(user.email, user.password)

    def say(self, sidecar: Sidecar, *words: str) -> None:
        """Updates, all in flight at once; each answer is noted as it comes."""
        for word in words:
            self.sent[word] = -1
        numbers = {
            word: sidecar.send("memory/update", userMessage=word, aiResponse="好", idempotencyKey=word)
            for word in words
        }
        for word, number in numbers.items():
            try:
                self.acknowledged[word] = str(sidecar.wait(number)["eventId"])
            finally:
                self._late_answers(sidecar, numbers)

    def _late_answers(self, sidecar: Sidecar, numbers: dict[str, int]) -> None:
        """What was answered before the end counts, whether or not somebody was waiting for it just then."""
        for word, number in numbers.items():
            with contextlib.suppress(queue.Empty):
                answer = sidecar._answers[number].get_nowait()
                sidecar._answers[number].put(answer)
                if "result" in answer:
                    self.acknowledged[word] = str(answer["result"]["eventId"])

    def type(self, line: str) -> None:
        """Put a line of one's own into the file, as an editor does that saves by rename."""
        heading = "### 工作习惯\n"
        text = self.text
        assert heading in text
        beside = self.file.with_name("editor.new")
        beside.write_text(text.replace(heading, f"{heading}- {line}\n", 1), "utf-8")
        beside.replace(self.file)
        self.typed.append(line)

    def an_hour_passes(self) -> None:
        """For what lies half written in our folders: no living process can still be writing it."""
        for path in self.home.data.rglob("*.tmp"):
            os.utime(path, (time.time() - 3600,) * 2)

    # --- what must hold --------------------------------------------------------------------------------------

    def check(self, sidecar: Sidecar) -> None:
        """After the restart: whatever was acknowledged or typed is there, once; the rest can be said again, once."""
        events = exchanges(sidecar)
        survived = Counter(event["event_id"] for event in events)
        assert max(survived.values(), default=0) <= 1
        lost = set(self.acknowledged.values()) - set(survived)
        assert not lost, f"acknowledged and lost: {lost}"
        self.check_sound(sidecar)
        for word in self.sent:
            again = sidecar.update(word, "好", idempotencyKey=word)["eventId"]
            assert again == self.acknowledged.get(word, again)
        self.check_document(sidecar)
        assert len(exchanges(sidecar)) == len(self.sent), "said again, it is there twice"

    @staticmethod
    def check_sound(sidecar: Sidecar) -> None:
        problems = sidecar.call("events/verify")["problems"]
        assert not problems, f"the log is not sound: {problems}"

    def check_document(self, sidecar: Sidecar) -> None:
        """Every word once, in the answer and, soon, in the file; nothing of ours lies beside it."""
        document = sidecar.load(waitMs=0)["document"]
        asked = questions(document)
        assert asked == dict.fromkeys(self.sent, 1), f"the document has {asked}"
        for line in self.typed:
            assert document.splitlines().count(f"- {line}") == 1, line
        sidecar.until("memory/load", lambda loaded: loaded["document"] == self.text, waitMs=0)
        self.check_tidy()

    def check_tidy(self) -> None:
        """Nothing half written stays; what is being written at this moment is soon done."""
        eventually(lambda: not self.leftovers())

    def leftovers(self) -> list[str]:
        """Temporary files that a killed process could not take away itself."""
        return [
            str(path.relative_to(self.home.folder))
            for path in self.home.folder.rglob("*")
            if path.name.endswith((".tmp", ".part", ".salvaged", ASIDE))
            or path.name.startswith((".salvage-", ".conversion-"))
        ]

    def holding(self, word: str) -> list[str]:
        """The files of this home in which a word stands, archives unpacked as far as they are whole."""
        return [path.name for path in holding(self.home.folder, word, unpacked=_unpacked)]

    def check_forgotten(self) -> None:
        """What was forgotten stands nowhere on the disk any more, or soon."""
        eventually(lambda: not any(map(self.holding, self.forgotten)))

    def check_server(self, sidecar: Sidecar, name: str) -> None:
        """Everything that was said here is on the server, once, in this order of numbers without a gap."""
        level(sidecar)
        ids = self.server(name).ids()
        assert Counter(ids) == Counter(event["event_id"] for event in exchanges(sidecar)), "the server has others"
        numbers = [row["seq"] for row in self.server(name).events]
        assert numbers == list(range(1, len(numbers) + 1)), f"numbered with a gap: {numbers}"

    def check_closed(self) -> None:
        """After the last one has left."""
        assert integrity(self.home) == "ok"
        left = {word: found for word in self.forgotten if (found := self.holding(word))}
        assert not left, f"forgotten, and still there: {left}"


def _unpacked(path: Path, data: bytes) -> bytes:
    if ".xbm" not in path.name:
        return data
    with contextlib.suppress(zlib.error):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data)  # also of one that was cut off
    return data
