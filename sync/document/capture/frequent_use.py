"""What the user does often: tasks and commands that came on three different days. Pure.

A command is one that a tool ran, or that the user asked to run. A task is a request in the same words; words of
courtesy and of the day (今天的日报) do not count. Questions, statements and what only looks around (`ls`) are neither.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Final, Literal

import msgspec

from sync.document.capture.exchange_events import is_in_document
from sync.document.markdown.entry_ids import derived_entry_id
from sync.document.markdown.model import Section
from sync.document.markdown.one_line import ELLIPSIS, escape_markdown, one_line
from sync.document.markdown.repeat_suffix import with_repeat_count
from sync.document.markdown.template import COMMON_COMMANDS, DAILY_TASKS
from sync.document.merge.text_equality import core_words
from sync.log.envelope import day_of
from sync.log.event_types import EXCHANGE_RECORDED, TOOL_CALL
from sync.log.model import Event
from sync.texts.language import Language, parse_language

MIN_DAYS: Final = 3
MAX_COMMAND_LENGTH: Final = 80  # characters; longer commands are rarely typed again
MIN_TASK_LETTERS: Final = 3  # 写日报
MIN_ASCII_LETTERS: Final = 6  # letters of a task in English: "backup"

_LOOKS_AROUND: Final = frozenset({"cat", "cd", "clear", "echo", "exit", "ls", "pwd", "which"})
_ASKS_TO_RUN: Final = re.compile(r"(?i)运行|执行|跑|敲|\b(?:run|execute)\b")
_INLINE_CODE: Final = re.compile(r"`([^`\n]+)`")
_BARE_COMMAND: Final = re.compile(
    r"(?:运行|执行|跑|敲)(?:一?[下遍]|命令)?\s*[:：]?\s*([a-z][\w./-]*(?: [!-~]+)+)", re.ASCII
)
_PROGRAM: Final = re.compile(r"[A-Za-z.~/][\w./~@+-]*(?: |\Z)", re.ASCII)
_DAY_WORDS: Final = re.compile(
    r"(?i)今[天日早晚]的?|明[天日早]的?|昨[天日晚]的?|[这本上下]?个?(?:周|星期)[一二三四五六日天]的?|[这本上下]个?(?:周|星期|月)的?"
    r"|[早晚]上的?|中午的?|下午的?|(?:\d{4}[-/年.])?\d{1,2}[-/月.]\d{1,2}[日号]?的?"
    r"|\b(?:today|tomorrow|yesterday|tonight|this (?:week|month|morning))(?:'s)?\b"
)
_QUESTION: Final = re.compile(
    r"(?i)[?？]|[吗呢么][。！!]*$|什么|怎么|怎样|为何|为啥|哪|谁|多少|几[个点次]|是不是|有没有|会不会|对不对"
    r"|^(?:do|does|did|what|why|how|which|who|when|where|is|are|should|would|will|am)\b"
)
_STATEMENT: Final = re.compile(
    r"(?i)^(?:我(?!要你|想你|想让你|需要你)|以后|今后|总是|每次|不要|别|记住"
    r"|(?:i|i'm|my|we|always|never|please don't|don't)\b)"
)


class Use(msgspec.Struct, frozen=True):
    """One use of a command or task: what it is counted under, and its text."""

    kind: Literal["command", "task"]
    key: str
    text: str

    @property
    def entry_id(self) -> str:
        """The id of its line: the same on every device."""
        return derived_entry_id("use", self.kind, self.key)


class FrequentUse(msgspec.Struct):
    """How often something came, with the text that it had first, and its days."""

    use: Use
    language: Language
    count: int = 0
    days: set[date] = msgspec.field(default_factory=set)

    @property
    def section(self) -> Section:
        return COMMON_COMMANDS if self.use.kind == "command" else DAILY_TASKS

    @property
    def is_frequent(self) -> bool:
        return len(self.days) >= MIN_DAYS

    @property
    def line(self) -> str:
        """The line of the document, without a count."""
        text = self.use.text
        if self.use.kind == "command" and "`" not in text:
            return f"- `{text}`"
        return f"- {escape_markdown(text)}"

    @property
    def counted_line(self) -> str:
        """The line of the document."""
        return with_repeat_count(self.line, self.count, self.language) if self.use.kind == "command" else self.line


class UseCounter:
    """Counts the uses in events, each event once, in log order."""

    def __init__(self) -> None:
        self._uses: dict[str, FrequentUse] = {}
        self._frequent: dict[str, FrequentUse] = {}

    def add(self, event: Event) -> None:
        for use in uses_of(event):
            language = parse_language(event.payload.get("language"))
            found = self._uses.setdefault(use.entry_id, FrequentUse(use, language))
            found.count += 1
            found.days.add(day_of(event))
            if found.is_frequent:
                self._frequent[use.entry_id] = found

    @property
    def frequent(self) -> dict[str, FrequentUse]:
        """What came on enough days, by entry id."""
        return self._frequent


def uses_of(event: Event) -> Iterator[Use]:
    """The commands of an event, or its task."""
    if event.type == TOOL_CALL:
        details = event.payload.get("details")
        command = details.get("command") if isinstance(details, dict) else None
        yield from _commands([command] if isinstance(command, str) else ())
        return
    question = event.payload.get("question")
    if event.type != EXCHANGE_RECORDED or not is_in_document(event) or not isinstance(question, str):
        return
    commands = list(_commands(_asked_commands(question)))
    yield from commands or _task(question)


def _asked_commands(question: str) -> list[str]:
    if not _ASKS_TO_RUN.search(question):
        return []
    return _INLINE_CODE.findall(question) or _BARE_COMMAND.findall(question)


def _commands(texts: Iterable[str]) -> Iterator[Use]:
    for text in dict.fromkeys(one_line(text) for text in texts if "\n" not in text.strip()):
        program = _PROGRAM.match(text)
        if program and program[0].strip() not in _LOOKS_AROUND and len(text) <= MAX_COMMAND_LENGTH:
            yield Use("command", text, text)


def _task(question: str) -> Iterator[Use]:
    if _QUESTION.search(question) or _STATEMENT.search(question) or question.endswith(ELLIPSIS):
        return
    key = core_words(_DAY_WORDS.sub(" ", question.replace("一下", " ")))
    if len(key) >= (MIN_ASCII_LETTERS if key.isascii() else MIN_TASK_LETTERS):
        yield Use("task", key, one_line(question))
