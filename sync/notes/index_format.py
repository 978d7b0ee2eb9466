"""Parse and render INDEX.md. Pure. Rows that do not change, and everything around the table, keep their bytes.

The table is found by its header: one with the columns Id and File. Columns that this program does not know stay, with
their values; the 13 columns of a new index are added if a header lacks some.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Final, Self

import msgspec
from msgspec.structs import replace

from sync.notes.model import INDEX_COLUMNS

NEW_INDEX_HEAD: Final = """\
# 记忆索引

这里列出每条记忆的 Id 与文件；内容以 `memory/notes/` 里的文件为准。

"""
_CELL_BREAK: Final = re.compile(r"(?<!\\)\|")
_SEPARATOR_CELL: Final = re.compile(r"\s*:?-+:?\s*")


class IndexLine(msgspec.Struct, frozen=True):
    """A line of the table's body. `values`: its cells by column; None if it is no row of this table."""

    raw: str
    values: Mapping[str, str] | None

    @property
    def note_id(self) -> str:
        return "" if self.values is None else self.values.get("Id", "")


class Index(msgspec.Struct, frozen=True, dict=True):
    """INDEX.md: the text before its table, the table, and the text after it."""

    head: str
    header: str
    separator: str
    columns: tuple[str, ...]
    lines: tuple[IndexLine, ...]
    tail: str
    newline: str = "\n"

    @cached_property
    def rows(self) -> dict[str, Mapping[str, str]]:
        """The values by id; of two rows of one id the first."""
        rows: dict[str, Mapping[str, str]] = {}
        for line in self.lines:
            if line.values is not None and line.note_id:
                rows.setdefault(line.note_id, line.values)
        return rows

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with single lines; they are left as they are."""
        counts = Counter(line.note_id for line in self.lines if line.values is not None)
        repeated = sorted(note_id for note_id, count in counts.items() if count > 1)
        broken = sum(line.values is None or not line.note_id for line in self.lines)
        found = [f"{broken} lines of the table of INDEX.md are no rows and are left as they are"] if broken else []
        return (*found, *(f"INDEX.md has more than one row for {note_id}" for note_id in repeated))

    def with_row(self, values: Mapping[str, str]) -> Self:
        """The index with these values in the row of their id, or in a new row at the end."""
        index = self._with_columns()
        note_id, lines, is_done = values["Id"], list[IndexLine](), False
        for line in index.lines:
            if not is_done and line.values is not None and line.note_id == note_id:
                merged = {**line.values, **values}
                lines.append(line if merged == line.values else IndexLine(index.render_row(merged), merged))
                is_done = True
            else:
                lines.append(line)
        if not is_done:
            lines.append(IndexLine(index.render_row(values), dict(values)))
        return replace(index, lines=tuple(lines))

    def without_rows(self, note_ids: Collection[str]) -> Self:
        kept = (line for line in self.lines if line.values is None or line.note_id not in note_ids)
        return replace(self, lines=tuple(kept))

    def with_new_id(self, note_id: str, new_id: str) -> Self:
        """The index with another id in a row; its other cells stay."""
        lines = list[IndexLine]()
        for line in self.lines:
            values = None if line.values is None or line.note_id != note_id else {**line.values, "Id": new_id}
            lines.append(line if values is None else IndexLine(self.render_row(values), values))
        return replace(self, lines=tuple(lines))

    def render(self) -> str:
        return self.head + self.header + self.separator + "".join(line.raw for line in self.lines) + self.tail

    def render_row(self, values: Mapping[str, str]) -> str:
        cells = " | ".join(_escape(values.get(column, "")) for column in self.columns)
        return f"| {cells} |{self.newline}"

    def _with_columns(self) -> Self:
        """The index with all columns of a new one; other columns stay in their place."""
        missing = [column for column in INDEX_COLUMNS if column not in self.columns]
        ended = self._with_last_newline()
        if not missing:
            return ended
        at = self.columns.index("File")
        columns = (*self.columns[:at], *missing, *self.columns[at:])
        wider = replace(
            self,
            columns=columns,
            header=f"| {' | '.join(columns)} |{self.newline}",
            separator=f"| {' | '.join('---' for _ in columns)} |{self.newline}",
        )
        lines = (
            line if line.values is None else IndexLine(wider.render_row(line.values), line.values)
            for line in ended.lines
        )
        return replace(wider, lines=tuple(lines))

    def _with_last_newline(self) -> Self:
        """The index with a line end behind its last row, so that another can follow."""
        if self.lines:
            last = self.lines[-1]
            if last.raw.endswith(("\n", "\r")):
                return self
            return replace(self, lines=(*self.lines[:-1], replace(last, raw=last.raw + self.newline)))
        return self if self.separator.endswith(("\n", "\r")) else replace(self, separator=self.separator + self.newline)


def new_index() -> Index:
    header = f"| {' | '.join(INDEX_COLUMNS)} |\n"
    separator = f"| {' | '.join('---' for _ in INDEX_COLUMNS)} |\n"
    return Index(NEW_INDEX_HEAD, header, separator, INDEX_COLUMNS, (), "")


def parse_index(text: str) -> Index | None:
    """The index; None if the text has no table with the columns Id and File."""
    lines = text.splitlines(keepends=True)
    for at in range(len(lines) - 1):
        columns = tuple(_cells(lines[at]))
        if not {"Id", "File"} <= set(columns) or len(set(columns)) < len(columns) or not _is_separator(lines[at + 1]):
            continue
        body = at + 2
        end = next((end for end in range(body, len(lines)) if not lines[end].lstrip().startswith("|")), len(lines))
        return Index(
            "".join(lines[:at]),
            lines[at],
            lines[at + 1],
            columns,
            tuple(_parse_line(line, columns) for line in lines[body:end]),
            "".join(lines[end:]),
            "\r\n" if lines[at].endswith("\r\n") else "\n",
        )
    return None


def index_of(rows: Iterable[Mapping[str, str]]) -> Index:
    index = new_index()
    for row in rows:
        index = index.with_row(row)
    return index


def _parse_line(raw: str, columns: tuple[str, ...]) -> IndexLine:
    cells = _cells(raw)
    return IndexLine(raw, dict(zip(columns, cells, strict=True)) if len(cells) == len(columns) else None)


def _cells(line: str) -> list[str]:
    text = line.strip()
    if not text.startswith("|"):
        return []
    parts = _CELL_BREAK.split(text[1:])
    if not parts[-1].strip():
        parts.pop()
    return [part.strip().replace("\\|", "|") for part in parts]


def _is_separator(line: str) -> bool:
    text = line.strip()
    return text.startswith("|") and all(_SEPARATOR_CELL.fullmatch(cell) for cell in text.strip("|").split("|"))


def _escape(value: str) -> str:
    return " ".join(value.split()).replace("|", "\\|")
