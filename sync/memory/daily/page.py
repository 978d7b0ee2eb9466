"""A day's records ↔ the Markdown file of seed 000 §3.2. Pure.

Decisions
    Reading is strict: every line that is not blank belongs to something that a record can hold, or the page is not
    understood. What is not understood is never overwritten.
    Two sections are ours: `### 标记` (important, outdated) and, in the home's folder, `### 来源`, the project that a
    record comes from. Sections that say nothing are left out.
    A page that would be larger than `max_file_size_mb` goes on in `<day>.2.md`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sync.errors import InvalidInput
from sync.memory.daily.model import Code, Content, Mark, Record, checked_day, checked_time, content

TOPIC: Final = "主题"
FACTS: Final = "关键信息"
CODE: Final = "代码/配置"
TAGS: Final = "标签"
MARK: Final = "标记"
ORIGIN: Final = "来源"
_MARK_WORDS: Final[dict[Mark, str]] = {"important": "重要", "outdated": "过时"}
_WORD_MARKS: Final = {word: mark for mark, word in _MARK_WORDS.items()}

_TITLE: Final = re.compile(r"# (\d{4}-\d{2}-\d{2}) 对话记忆", re.ASCII)
_SESSION: Final = re.compile(r"## Session ([1-9]\d{0,5}) - (\d{2}:\d{2}:\d{2})", re.ASCII)
_SECTION: Final = re.compile(r"### (.+)")
_FENCE: Final = re.compile(r"(`{3,})([^`]*)")


@dataclass(frozen=True, slots=True)
class Note:
    """One session as a page shows it."""

    number: int
    time: str
    content: Content
    marks: tuple[Mark, ...] = ()
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A day in one file."""

    day: str
    notes: tuple[Note, ...]


def note_of(record: Record, number: int, *, with_origin: bool) -> Note:
    shown = tuple(mark for mark in record.marks if mark in _MARK_WORDS)
    return Note(number, record.time, record.content, shown, record.project_path if with_origin else None)


def render(page: Page) -> str:
    """The whole file."""
    return "\n".join(_lines(page)) + "\n"


def line_ranges(page: Page) -> dict[int, tuple[int, int]]:
    """Where each session stands in the file as rendered: its heading's line and its last, counted from 1."""
    at, found = 2, {}  # the title and the blank line after it
    for index, note in enumerate(page.notes):
        at += 3 if index else 0  # a rule between two blank lines; the blank before it is counted here
        length = len(_note_lines(note))
        found[note.number] = (at + 1, at + length)
        at += length
    return found


def parts(page: Page, limit: int) -> list[Page]:
    """The page in as many files as it takes to keep each below `limit` bytes; one session is never divided."""
    found: list[list[Note]] = [[]]
    size = 0
    for note in page.notes:
        length = len("\n".join(_note_lines(note)).encode()) + 64  # what stands around it
        if found[-1] and size + length > limit:
            found.append([])
            size = 0
        found[-1].append(note)
        size += length
    return [Page(page.day, tuple(notes)) for notes in found]


def parse(text: str) -> Page:
    """A page as a person may have left it. InvalidInput names the first line that no record can hold."""
    lines = text.replace("\r\n", "\n").removeprefix("\ufeff").split("\n")
    reader = _Reader(lines)
    title = _TITLE.fullmatch(reader.next_said().strip())
    if title is None:
        raise reader.wrong("the file begins with # 2026-01-29 对话记忆")
    notes = []
    while line := reader.next_said():
        notes.append(_note(reader, line))
    numbers = [note.number for note in notes]
    if len(set(numbers)) < len(numbers):
        raise InvalidInput("two sessions have one number", field="page")
    return Page(checked_day(title.group(1)), tuple(notes))


class _Reader:
    """Lines, one after the other."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.at = 0

    def next_said(self) -> str:
        """The next line that is not blank; empty at the end."""
        while self.at < len(self._lines):
            self.at += 1
            if self._lines[self.at - 1].strip():
                return self._lines[self.at - 1].rstrip()
        return ""

    def section(self) -> list[str]:
        """The lines up to the next heading, rule between sessions or the end. A fence hides what looks like one."""
        found: list[str] = []
        fence = ""
        while self.at < len(self._lines):
            line = self._lines[self.at].rstrip("\r")
            mark = _FENCE.fullmatch(line.strip())
            if fence:
                fence = "" if line.strip() == fence else fence
            elif mark is not None:
                fence = mark.group(1)
            elif _SESSION.fullmatch(line.strip()) or _SECTION.fullmatch(line.strip()) or line.strip() == "---":
                break
            found.append(line)
            self.at += 1
        if fence:
            raise self.wrong("a fence is not closed")
        return found

    def peek(self) -> str:
        before = self.at
        line = self.next_said()
        self.at = before
        return line

    def wrong(self, what: str) -> InvalidInput:
        return InvalidInput(f"line {self.at}: {what}", field="page", hint="Write it as the other sessions are.")


def _note(reader: _Reader, line: str) -> Note:
    heading = _SESSION.fullmatch(line.strip())
    if heading is None:
        raise reader.wrong("a session begins with ## Session 1 - 10:30:45")
    said: dict[str, list[str]] = {}
    while (section := _SECTION.fullmatch(reader.peek().strip())) is not None:
        reader.next_said()
        name = section.group(1).strip()
        if name in said or name not in {TOPIC, FACTS, CODE, TAGS, MARK, ORIGIN}:
            raise reader.wrong("an unknown section, or one that stands twice")
        said[name] = reader.section()
    if reader.peek().strip() == "---":
        reader.next_said()
    topic = " ".join(part.strip() for part in said.get(TOPIC, []) if part.strip())
    if not topic:
        raise reader.wrong("a session has a ### 主题")
    return Note(
        number=int(heading.group(1)),
        time=checked_time(heading.group(2)),
        content=content(
            topic, _facts(said.get(FACTS, [])), _code(reader, said.get(CODE, [])), _tags(reader, said.get(TAGS, []))
        ),
        marks=_marks(reader, said.get(MARK, [])),
        origin=" ".join(said.get(ORIGIN, [])).strip() or None,
    )


def _facts(lines: Sequence[str]) -> list[str]:
    """Each bullet, or each line without one; an indented line goes on with the bullet above it."""
    found: list[str] = []
    for line in lines:
        text = line.strip()
        if not text:
            continue
        if found and line.startswith(("  ", "\t")) and text[:2] not in {"- ", "* "}:
            found[-1] += " " + text
        else:
            found.append(re.sub(r"^[-*+]\s+", "", text))
    return found


def _code(reader: _Reader, lines: Sequence[str]) -> list[Code]:
    found: list[Code] = []
    fence, language, inside = "", "", list[str]()
    for line in lines:
        mark = _FENCE.fullmatch(line.strip())
        if fence and line.strip() == fence:
            found.append(Code(language, "\n".join(inside)))
            fence, inside = "", []
        elif fence:
            inside.append(line)
        elif mark is not None:
            fence, language = mark.group(1), mark.group(2).strip()
        elif line.strip():
            raise reader.wrong("code stands between ``` and ```")
    return found


def _tags(reader: _Reader, lines: Sequence[str]) -> list[str]:
    words = " ".join(lines).split()
    if any(not word.startswith("#") or word.strip("#") == "" for word in words):
        raise reader.wrong("tags are written as #one #two")
    return [word.lstrip("#") for word in words]


def _marks(reader: _Reader, lines: Sequence[str]) -> tuple[Mark, ...]:
    words = re.split(r"[\s,，、]+", " ".join(lines).strip())
    unknown = [word for word in words if word and word not in _WORD_MARKS]
    if unknown:
        raise reader.wrong("marks are 重要 and 过时")
    return tuple(mark for mark, word in _MARK_WORDS.items() if word in words)


def _lines(page: Page) -> Iterator[str]:
    yield from (f"# {page.day} 对话记忆", "")
    for index, note in enumerate(page.notes):
        if index:
            yield from ("", "---", "")
        yield from _note_lines(note)


def _note_lines(note: Note) -> list[str]:
    said = note.content
    lines = [f"## Session {note.number} - {note.time}", "", f"### {TOPIC}", said.topic]
    if said.facts:
        lines += ["", f"### {FACTS}", *(f"- {fact}" for fact in said.facts)]
    if said.code:
        lines += ["", f"### {CODE}"]
        for block in said.code:
            fence = _fence_for(block.text)
            lines += [f"{fence}{block.language}", *block.text.split("\n"), fence]
    if said.tags:
        lines += ["", f"### {TAGS}", " ".join(f"#{tag}" for tag in said.tags)]
    if note.marks:
        lines += ["", f"### {MARK}", "、".join(_MARK_WORDS[mark] for mark in note.marks)]
    if note.origin:
        lines += ["", f"### {ORIGIN}", note.origin]
    return lines


def _fence_for(text: str) -> str:
    """Longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    return "`" * (longest + 1)
