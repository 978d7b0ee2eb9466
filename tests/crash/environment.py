"""The environment of one crash point: a home, what was recorded in it, a sidecar that dies, and the checks."""

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

from sync.system.atomic_swap import DISPLACED_SUFFIX
from tests.acceptance.environment import (
    ServerRows,
    cloud_settings,
    exchanges,
    files_containing,
    integrity,
    question_counts,
    unreachable_cloud_settings,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import ANSWER_WITHIN, Home, Sidecar, wait_until

CHILD: Final = (sys.executable, "-m", "tests.crash.crash_process")
LOOK_EVERY: Final = 0.02  # seconds between checks of the process


class SidecarDied(Exception):
    """The process has ended, as planned."""


class CrashingSidecar(Sidecar):
    """A sidecar that dies at its step; waiting calls raise SidecarDied at once."""

    def wait_for_response(self, number: int, timeout: float = ANSWER_WITHIN) -> Any:
        deadline = time.monotonic() + timeout
        while True:
            alive = self._reader.is_alive()
            try:
                return super().wait_for_response(number, LOOK_EVERY if alive else 0)
            except TimeoutError:
                if not alive:
                    raise SidecarDied from None
                if time.monotonic() > deadline:
                    raise

    def send(self, method: str, **params: Any) -> int:
        try:
            return super().send(method, **params)
        except OSError:
            raise SidecarDied from None

    def wait_until(self, condition: Callable[[], object], timeout: float = ANSWER_WITHIN) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if self.process.poll() is not None:
                raise SidecarDied
            assert time.monotonic() < deadline, f"it never happened; see {self.home.folder / 'stderr.log'}"
            time.sleep(LOOK_EVERY)  # polling interval

    def _read(self) -> None:
        with contextlib.suppress(ValueError):  # half a response is none
            super()._read()


@dataclass
class CrashEnvironment:
    """The environment that a scenario uses."""

    folder: Path
    cloud: Cloud | None
    new_user: Callable[[], User] | None
    newer_schema: bool = False  # the program has one more migration
    settings: dict[str, str] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    sent_updates: dict[str, int] = field(default_factory=dict)
    acknowledged_ids: dict[str, str] = field(default_factory=dict)
    typed_lines: list[str] = field(default_factory=list)
    erased_words: list[str] = field(default_factory=list)  # words whose erasure was acknowledged
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
        self.home.settings |= cloud_settings(self.cloud)

    def offline(self) -> None:
        self.home.settings |= unreachable_cloud_settings()

    def user(self, name: str) -> User:
        if name not in self.users:
            assert self.new_user is not None
            self.users[name] = self.new_user()
        return self.users[name]

    def server(self, name: str) -> ServerRows:
        assert self.cloud is not None
        return ServerRows(self.cloud, self.user(name).user_id)

    def sidecar(self) -> Sidecar:
        """A sidecar that does not die."""
        return Sidecar(self.home, command=[*CHILD, "--ahead"]) if self.newer_schema else Sidecar(self.home)

    def crashing_sidecar(self, *flags: str) -> CrashingSidecar:
        ahead = ["--ahead"] if self.newer_schema else []
        return CrashingSidecar(self.home, command=[*CHILD, *ahead, *flags])

    def log_in(self, sidecar: Sidecar, name: str) -> None:
        user = self.user(name)
        sidecar.log_in(user.email, user.password)

    def send_updates(self, sidecar: Sidecar, *words: str) -> None:
        """Send updates concurrently; note each response."""
        for word in words:
            self.sent_updates[word] = -1
        numbers = {
            word: sidecar.send("memory/update", userMessage=word, aiResponse="好", idempotencyKey=word)
            for word in words
        }
        for word, number in numbers.items():
            try:
                self.acknowledged_ids[word] = str(sidecar.wait_for_response(number)["eventId"])
            finally:
                self._collect_late_answers(sidecar, numbers)

    def _collect_late_answers(self, sidecar: Sidecar, numbers: dict[str, int]) -> None:
        """Note responses that arrived before the end and that nothing waited for."""
        for word, number in numbers.items():
            with contextlib.suppress(queue.Empty):
                answer = sidecar._answers[number].get_nowait()
                sidecar._answers[number].put(answer)
                if "result" in answer:
                    self.acknowledged_ids[word] = str(answer["result"]["eventId"])

    def type_line(self, line: str) -> None:
        """Add a line to the file, as an editor that saves by rename."""
        heading = "### 工作习惯\n"
        text = self.text
        assert heading in text
        beside = self.file.with_name("editor.new")
        beside.write_text(text.replace(heading, f"{heading}- {line}\n", 1), "utf-8")
        beside.replace(self.file)
        self.typed_lines.append(line)

    def age_temporary_files(self) -> None:
        """Make half-written files old enough to be removed."""
        for path in self.home.folder.rglob("*.tmp"):
            os.utime(path, (time.time() - 3600,) * 2)

    # --- checks ----------------------------------------------------------------------------------------------

    def check(self, sidecar: Sidecar) -> None:
        """After the restart all acknowledged or typed words are there once; the rest can be sent again, once."""
        events = exchanges(sidecar)
        survived = Counter(event["event_id"] for event in events)
        assert max(survived.values(), default=0) <= 1
        lost = set(self.acknowledged_ids.values()) - set(survived)
        assert not lost, f"acknowledged and lost: {lost}"
        self.check_sound(sidecar)
        for word in self.sent_updates:
            again = sidecar.update(word, "好", idempotencyKey=word)["eventId"]
            assert again == self.acknowledged_ids.get(word, again)
        self.check_document(sidecar)
        assert len(exchanges(sidecar)) == len(self.sent_updates), "said again, it is there twice"

    @staticmethod
    def check_sound(sidecar: Sidecar) -> None:
        problems = sidecar.call("events/verify")["problems"]
        assert not problems, f"the log is not sound: {problems}"

    def check_document(self, sidecar: Sidecar) -> None:
        """Every word is there once, in the result and soon in the file, with no leftover beside it."""
        document = sidecar.load(waitMs=1)["document"]
        counts = question_counts(document)
        assert counts == dict.fromkeys(self.sent_updates, 1), f"the document has {counts}"
        for line in self.typed_lines:
            assert document.splitlines().count(f"- {line}") == 1, line
        sidecar.call_until("memory/load", lambda loaded: loaded["document"] == self.text, waitMs=1)
        self.check_no_leftovers()

    def check_no_leftovers(self) -> None:
        """No half-written file stays; a current write ends soon."""
        wait_until(lambda: not self.leftovers())

    def leftovers(self) -> list[str]:
        """Temporary files that a killed process left."""
        return [
            str(path.relative_to(self.home.folder))
            for path in self.home.folder.rglob("*")
            if path.name.endswith((".tmp", ".part", ".salvaged", DISPLACED_SUFFIX))
            or path.name.startswith((".salvage-", ".conversion-"))
        ]

    def files_containing(self, word: str) -> list[str]:
        """The files of this home that contain a word, in archives too as far as they are readable."""
        return [path.name for path in files_containing(self.home.folder, word, unpack=_unpack)]

    def check_erased(self) -> None:
        """Erased words are nowhere on disk, now or soon."""
        wait_until(lambda: not any(map(self.files_containing, self.erased_words)))

    def check_server(self, sidecar: Sidecar, name: str) -> None:
        """All events are on the server once, numbered without a gap."""
        wait_until_synced(sidecar)
        ids = self.server(name).event_ids()
        assert Counter(ids) == Counter(event["event_id"] for event in exchanges(sidecar)), "the server has others"
        numbers = [row["seq"] for row in self.server(name).events]
        assert numbers == list(range(1, len(numbers) + 1)), f"numbered with a gap: {numbers}"

    def check_closed(self) -> None:
        """Check the files after the last sidecar has ended."""
        assert integrity(self.home) == "ok"
        left = {word: found for word in self.erased_words if (found := self.files_containing(word))}
        assert not left, f"forgotten, and still there: {left}"


def _unpack(path: Path, data: bytes) -> bytes:
    if ".xbm" not in path.name:
        return data
    with contextlib.suppress(zlib.error):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data)  # also of a truncated one
    return data
