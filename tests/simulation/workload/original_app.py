"""The original app's memory, written from its description, under the same faults.

Load: the cloud's row of this device, else the local file, else the template. Update: load the local file, put the
exchange under today's heading by string surgery, replace the time, write the file in place, upsert the whole document.
An error is swallowed: the conversation goes on. There is no log, no base and no merge, and a person edits the same
file. The app shows what it loads in its settings page and saves that text back as a whole.

Lost words: words of acknowledged exchanges and of saved edits that nothing removed and that are neither in the file nor
in the cloud's row of their device at the end. Words that an old buffer overwrote count as lost.
"""

import random
from dataclasses import dataclass, field
from typing import Final

from sync.document.markdown.template import RECORDS, empty_document
from sync.document.markdown.words import WORDS
from sync.texts.language import ZH
from tests.simulation.checks.expected_state import WORD
from tests.simulation.workload.plan import PlanStep, SimulationPlan

WORDING: Final = WORDS[ZH]
TODAY: Final = "2026/2/2"
CUT_BY_POWER: Final = 0.5  # how likely bytes that were never synced are cut by a power loss soon after
CUT_BY_DEATH: Final = 0.3  # and a write in place by a process that dies during an update


@dataclass(frozen=True, slots=True)
class WordLosses:
    """Counts of recorded words that were not removed, and of those that are missing at the end."""

    remembered: int
    lost: int


@dataclass
class _Device:
    """One installation: file, cloud row, editor buffer, state of the network."""

    file: str | None = None
    row: str | None = None
    buffer: str = ""
    online: bool = True
    words: set[str] = field(default_factory=set)


class _Original:
    """All devices of a run under the original algorithm."""

    def __init__(self, plan: SimulationPlan) -> None:
        self._plan = plan
        self._count = 0
        self._devices = [_Device() for _ in range(plan.devices)]
        self._server_up = True
        self._taken: set[str] = set()

    def run(self) -> WordLosses:
        for step in self._plan.steps:
            device = self._devices[step.device]
            chance = random.Random(f"{self._plan.seed} step {step.number}")
            self._act(device, step, chance)
        remembered = {(at, word) for at, device in enumerate(self._devices) for word in device.words - self._taken}
        there = [set(WORD.findall(f"{device.file or ''} {device.row or ''}")) for device in self._devices]
        return WordLosses(len(remembered), sum(1 for at, word in remembered if word not in there[at]))

    def _act(self, device: _Device, step: PlanStep, chance: random.Random) -> None:
        if step.action in {"say", "again"}:
            self._update(device, chance, dies=step.fuse is not None)
        elif step.action in {"edit", "torn", "stale", "app save"}:
            self._edit_and_save(device, chance, step.action)
        elif step.action in {"cut", "mend"}:
            device.online = step.action == "mend"
        elif step.action in {"server down", "server up"}:
            self._server_up = step.action == "server up"
        elif step.action in {"restore", "replace"}:
            for other in self._devices:
                other.row = None
        else:
            _damage_file(device, step.action, chance)

    def _load(self, device: _Device) -> str:
        """Cloud, else file, else template; an error anywhere is the template."""
        if self._reaches_server(device, random.Random(self._count)) and device.row:
            return device.row
        return device.file if device.file is not None else empty_document(f"{TODAY} 18:00:00").decode()

    def _update(self, device: _Device, chance: random.Random, *, dies: bool) -> None:
        question, answer = self._sentence(chance), self._sentence(chance)
        if (
            device.file is None
        ):  # `readFile` throws and the error is swallowed, unless the file was created at the start
            device.file = empty_document(f"{TODAY} 18:00:00").decode()
        if chance.random() < self._plan.rate("file"):
            return  # swallowed: the app says nothing, and promised nothing
        device.file = _with_entry(device.file, question, answer)
        if dies:
            device.file = _maybe_truncate(device.file, chance, CUT_BY_DEATH)
            return
        device.words |= set(WORD.findall(f"{question} {answer}"))
        if self._reaches_server(device, chance):
            device.row = device.file

    def _edit_and_save(self, device: _Device, chance: random.Random, how: str) -> None:
        """The user changes a fresh or old buffer, or the app's text, and overwrites the file with it."""
        if how == "app save":
            device.buffer = self._load(device)
        elif how != "stale" or not device.buffer:
            device.buffer = device.file or ""
        lines = device.buffer.split("\n")
        places = [at for at, line in enumerate(lines) if line.startswith(("- ", "###"))]
        items = [at for at, line in enumerate(lines) if line.startswith("- ") and WORD.search(line)]
        if not places:
            return
        if chance.random() < 0.75 or not items:
            text = self._sentence(chance)
            lines.insert(chance.choice(places) + 1, f"- {text}")
            device.words |= set(WORD.findall(text))
        else:
            self._taken |= set(WORD.findall(lines.pop(chance.choice(items))))
        device.buffer = "\n".join(lines)
        device.file = device.buffer

    def _reaches_server(self, device: _Device, chance: random.Random) -> bool:
        return device.online and self._server_up and chance.random() >= self._plan.rate("loss")

    def _sentence(self, chance: random.Random) -> str:
        words = []
        for _ in range(chance.randint(1, 3)):
            self._count += 1
            words.append(f"w{self._count}x")
        return " ".join(words)


def _damage_file(device: _Device, action: str, chance: random.Random) -> None:
    if action == "empty":
        device.file = ""
    elif action == "delete":
        device.file = None
    elif action == "cut off":
        device.file = _maybe_truncate(device.file, chance, 1.0)
    elif action == "power loss":
        device.file = _maybe_truncate(device.file, chance, CUT_BY_POWER)


def _with_entry(text: str, question: str, answer: str) -> str:
    """String surgery: behind today's heading, or a new heading below the records."""
    entry = f"{WORDING.question_prefix}{question}\n{WORDING.answer_prefix}{answer}\n"
    heading = f"### {TODAY}\n"
    if heading in text:
        return text.replace(heading, f"{heading}{entry}\n", 1)
    return text.replace(f"## {RECORDS}\n\n{WORDING.placeholder}", f"## {RECORDS}\n\n{heading}{entry}", 1)


def _maybe_truncate(text: str | None, chance: random.Random, likely: float) -> str | None:
    """`writeFile` truncates and writes; an interruption in between leaves a part."""
    return text[: chance.randrange(len(text))] if text and chance.random() < likely else text


def run(plan: SimulationPlan) -> WordLosses:
    """Count what the original algorithm loses in this run."""
    return _Original(plan).run()
