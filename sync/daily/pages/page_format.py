"""A day's records as a Markdown page, and back. Pure.

Parsing is strict: a page with a line that no record can hold is refused, and then never overwritten. Two sections are
additional sections: the marks (important, outdated) and, in a shared folder, the record's project.
After its time a session of another device has its label, as 【来自 手机】.
A page that exceeds `max_file_size_mb` continues in `<day>.2.md`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.daily.model import Code, Content, Mark, Record, normalised_content, parse_day, parse_time
from sync.errors import InvalidInput
from sync.system.files import FileProbe
from sync.texts.language import ZH, Language
from sync.texts.table import text

TOPIC_HEADING: Final = "Topic"
FACTS_HEADING: Final = "Key facts"
CODE_HEADING: Final = "Code or configuration"
TAGS_HEADING: Final = "Tags"
MARK_HEADING: Final = "Marks"
ORIGIN_HEADING: Final = "Origin"
_HEADINGS: Final = (TOPIC_HEADING, FACTS_HEADING, CODE_HEADING, TAGS_HEADING, MARK_HEADING, ORIGIN_HEADING)
_MARK_WORDS: Final[tuple[Mark, ...]] = ("important", "outdated")
PAGE_TITLE: Final = "{day} Conversation memory"

_DAY: Final = r"(\d{4}-\d{2}-\d{2})"
_PAGE_TITLES: Final = {one: re.compile("# " + text(PAGE_TITLE, one, day=_DAY), re.ASCII) for one in Language}
_SESSION_HEADING: Final = re.compile(r"## Session ([1-9]\d{0,5}) - (\d{2}:\d{2}:\d{2})(?: 【([^】]*)】)?", re.ASCII)
_SECTION_HEADING: Final = re.compile(r"### (.+)")
_SECTION_END: Final = re.compile(rf"{_SESSION_HEADING.pattern}|{_SECTION_HEADING.pattern}|---", re.ASCII)
_FENCE: Final = re.compile(r"(`{3,})([^`]*)")


class PageSession(msgspec.Struct, frozen=True):
    """One session as a page shows it. `label`: the other device whose words it has."""

    number: int
    time: str
    content: Content
    marks: tuple[Mark, ...] = ()
    origin: str | None = None
    label: str | None = None

    @property
    def heading(self) -> str:
        """The number and the time, which no edit changes."""
        return f"{self.number} {self.time}"


class DayPage(msgspec.Struct, frozen=True):
    """A day in one file. `language`: of its headings."""

    day: str
    sessions: tuple[PageSession, ...]
    language: Language = ZH


def page_session_of(record: Record, number: int, *, with_origin: bool) -> PageSession:
    shown = tuple(mark for mark in record.marks if mark in _MARK_WORDS)
    origin = record.project_path if with_origin else None
    return PageSession(number, record.time, record.content, shown, origin, record.label)


def bracketed(label: str | None) -> str:
    """A label as it stands beside a text; empty without one."""
    return "" if label is None else f"【{label}】"


def render(page: DayPage) -> str:
    """The whole file."""
    return "\n".join(_page_lines(page)) + "\n"


def line_ranges(page: DayPage) -> dict[int, tuple[int, int]]:
    """Each session's first and last line in the rendered file, counted from 1."""
    at, ranges = 2, {}  # the title and the blank line after it
    for index, session in enumerate(page.sessions):
        at += 3 if index else 0  # a rule between two blank lines
        length = len(_session_lines(session, page.language))
        ranges[session.number] = (at + 1, at + length)
        at += length
    return ranges


def split_page(page: DayPage, limit: int) -> list[DayPage]:
    """Split a page into files below `limit` bytes. A session is never divided."""
    parts: list[list[PageSession]] = [[]]
    size = 0
    for session in page.sessions:
        length = len("\n".join(_session_lines(session, page.language)).encode()) + 64  # with the lines around it
        if parts[-1] and size + length > limit:
            parts.append([])
            size = 0
        parts[-1].append(session)
        size += length
    return [replace(page, sessions=tuple(sessions)) for sessions in parts]


def parse(content: str) -> DayPage:
    """Parse a page that may have been edited. Raises InvalidInput that names the first invalid line."""
    lines = content.replace("\r\n", "\n").removeprefix("\ufeff").split("\n")
    reader = _LineReader(lines)
    found = page_title(reader.next_non_blank())
    if found is None:
        raise reader.error("the file begins with # 2026-01-29 对话记忆 or # 2026-01-29 Conversation memory")
    day, language = found
    sessions = []
    while line := reader.next_non_blank():
        sessions.append(_parse_session(reader, line, language))
    numbers = [session.number for session in sessions]
    if len(set(numbers)) < len(numbers):
        raise InvalidInput("two sessions have one number", field="page")
    return DayPage(parse_day(day), tuple(sessions), language)


def in_its_language(page: DayPage, existing: FileProbe | None, language: Language) -> DayPage:
    """The page in a language; an existing file keeps its headings."""
    title = None if existing is None else page_title(existing.data.partition(b"\n")[0].decode("utf-8", "replace"))
    return replace(page, language=language if title is None else title[1])


def page_title(line: str) -> tuple[str, Language] | None:
    """The day and the language that the first line of a page names."""
    for language, form in _PAGE_TITLES.items():
        if (title := form.fullmatch(line.strip())) is not None:
            return title[1], language
    return None


class _LineReader:
    """Reads lines one by one and knows the current line's number."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.line_number = 0

    def next_non_blank(self) -> str:
        """The next line that is not blank; empty at the end."""
        while self.line_number < len(self._lines):
            self.line_number += 1
            if self._lines[self.line_number - 1].strip():
                return self._lines[self.line_number - 1].rstrip()
        return ""

    def section_lines(self) -> list[str]:
        """The lines up to the next heading, rule or the end of the file, ignoring both inside a fence."""
        lines: list[str] = []
        fence = ""
        while self.line_number < len(self._lines):
            line = self._lines[self.line_number].rstrip("\r")
            mark = _FENCE.fullmatch(line.strip())
            if fence:
                fence = "" if line.strip() == fence else fence
            elif mark is not None:
                fence = mark.group(1)
            elif _SECTION_END.fullmatch(line.strip()):
                break
            lines.append(line)
            self.line_number += 1
        if fence:
            raise self.error("a fence is not closed")
        return lines

    def peek(self) -> str:
        before = self.line_number
        line = self.next_non_blank()
        self.line_number = before
        return line

    def error(self, what: str) -> InvalidInput:
        return InvalidInput(
            f"line {self.line_number}: {what}", field="page", hint="Write it as the other sessions are."
        )


def _parse_session(reader: _LineReader, line: str, language: Language) -> PageSession:
    heading = _SESSION_HEADING.fullmatch(line.strip())
    if heading is None:
        raise reader.error("a session begins with ## Session 1 - 10:30:45")
    names = {text(heading, language): heading for heading in _HEADINGS}
    sections: dict[str, list[str]] = {}
    while (section := _SECTION_HEADING.fullmatch(reader.peek().strip())) is not None:
        reader.next_non_blank()
        name = names.get(section.group(1).strip(), "")
        if name in sections or not name:
            raise reader.error("an unknown section, or one that occurs twice")
        sections[name] = reader.section_lines()
    if reader.peek().strip() == "---":
        reader.next_non_blank()
    topic = " ".join(part.strip() for part in sections.get(TOPIC_HEADING, []) if part.strip())
    if not topic:
        raise reader.error(f"a session has a ### {text(TOPIC_HEADING, language)}")
    return PageSession(
        number=int(heading.group(1)),
        time=parse_time(heading.group(2)),
        content=normalised_content(
            topic,
            _parse_facts(sections.get(FACTS_HEADING, [])),
            _parse_code(reader, sections.get(CODE_HEADING, [])),
            _parse_tags(reader, sections.get(TAGS_HEADING, [])),
        ),
        marks=_parse_marks(reader, sections.get(MARK_HEADING, []), language),
        origin=" ".join(sections.get(ORIGIN_HEADING, [])).strip() or None,
        label=heading.group(3),
    )


def _parse_facts(lines: Sequence[str]) -> list[str]:
    """One fact for each bullet or line; an indented line continues the one above."""
    facts: list[str] = []
    for line in lines:
        words = line.strip()
        if not words:
            continue
        if facts and line.startswith(("  ", "\t")) and words[:2] not in {"- ", "* "}:
            facts[-1] += " " + words
        else:
            facts.append(re.sub(r"^[-*+]\s+", "", words))
    return facts


def _parse_code(reader: _LineReader, lines: Sequence[str]) -> list[Code]:
    blocks: list[Code] = []
    fence, language, inside = "", "", list[str]()
    for line in lines:
        mark = _FENCE.fullmatch(line.strip())
        if fence and line.strip() == fence:
            blocks.append(Code(language, "\n".join(inside)))
            fence, inside = "", []
        elif fence:
            inside.append(line)
        elif mark is not None:
            fence, language = mark.group(1), mark.group(2).strip()
        elif line.strip():
            raise reader.error("code is written between ``` and ```")
    return blocks


def _parse_tags(reader: _LineReader, lines: Sequence[str]) -> list[str]:
    words = " ".join(lines).split()
    if any(not word.startswith("#") or word.strip("#") == "" for word in words):
        raise reader.error("tags are written as #one #two")
    return [word.lstrip("#") for word in words]


def _parse_marks(reader: _LineReader, lines: Sequence[str], language: Language) -> tuple[Mark, ...]:
    words = re.split(r"[\s,，、]+", " ".join(lines).strip())
    known = {text(mark, language): mark for mark in _MARK_WORDS}
    if any(word and word not in known for word in words):
        raise reader.error(f"marks are {' and '.join(known)}")
    return tuple(mark for word, mark in known.items() if word in words)


def _page_lines(page: DayPage) -> Iterator[str]:
    yield from (f"# {text(PAGE_TITLE, page.language, day=page.day)}", "")
    for index, session in enumerate(page.sessions):
        if index:
            yield from ("", "---", "")
        yield from _session_lines(session, page.language)


def _session_lines(session: PageSession, language: Language) -> list[str]:
    def say(heading: str) -> str:
        return f"### {text(heading, language)}"

    content = session.content
    heading = f"## Session {session.number} - {session.time} {bracketed(session.label)}".rstrip()
    lines = [heading, "", say(TOPIC_HEADING), content.topic]
    if content.facts:
        lines += ["", say(FACTS_HEADING), *(f"- {fact}" for fact in content.facts)]
    if content.code:
        lines += ["", say(CODE_HEADING)]
        for block in content.code:
            fence = _fence_for(block.text)
            lines += [f"{fence}{block.language}", *block.text.split("\n"), fence]
    if content.tags:
        lines += ["", say(TAGS_HEADING), " ".join(f"#{tag}" for tag in content.tags)]
    if session.marks:
        lines += ["", say(MARK_HEADING), text(", ", language).join(text(mark, language) for mark in session.marks)]
    if session.origin:
        lines += ["", say(ORIGIN_HEADING), session.origin]
    return lines


def _fence_for(text: str) -> str:
    """Longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    return "`" * (longest + 1)
