"""Bytes to blocks. Whatever is accepted here comes out of `render` byte for byte.

Decisions
    What is not structure is an entry, one per line: a line we do not understand is still a line somebody wrote.
    A fenced block is one entry, so that a ``#`` in a shell script opens no section. A fence that nobody closes is an
    ordinary line: while a person types one, everything below it would otherwise vanish into a single entry and come
    back a moment later. Front matter is recognised only if it reads like front matter; our own first separator might
    be the first line of a file. Of several lines that look like the footer, the last one is it.
    Bytes that are UTF-8 but for a few are damaged UTF-8 and are refused: read as GB18030 they would turn into
    plausible nonsense. Text in GB18030 rarely holds long runs of valid UTF-8, which tells the two apart.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from sync.document.markdown.model import (
    BOM,
    KIND_LETTERS,
    Block,
    BlockKind,
    Encoding,
    MemoryDocument,
    Section,
    count_line_endings,
    lines_of,
    preset_cached,
    shape_of,
)
from sync.errors import DocumentUntouchable

MAX_BYTES: Final = 4 * 1024 * 1024  # a memory that a prompt could hold is a thousandth of this
MAX_FRONT_MATTER_LINES: Final = 200  # more than any real one; bounds the search for its end

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?\Z", re.DOTALL)
_PLACEHOLDER: Final = re.compile(r"\s*[-*+]\s*[（(]\s*待补充\s*[)）]\s*\Z")
_FOOTER: Final = re.compile(r"\s*\*\*\s*最后更新\s*(?:\*\*\s*[：:]|[：:]\s*\*\*)(.*)\Z", re.DOTALL)
_FENCE: Final = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`]*\Z)|~{3,})", re.DOTALL)
_FENCE_END: Final = re.compile(r"\s*(`{3,}|~{3,})\s*\Z")
_YAML_KEY: Final = re.compile(r"[^\W\d][\w .-]*:(?:\s|\Z)")
_YAML_OTHER: Final = re.compile(r"\s|- |# |\Z")


def parse(data: bytes) -> MemoryDocument:
    """The document in `data`; DocumentUntouchable if it is no text, no encoding we know, or above `MAX_BYTES`."""
    if len(data) > MAX_BYTES:
        raise DocumentUntouchable(f"the memory file has {len(data)} bytes, the limit is {MAX_BYTES}")
    if b"\0" in data:
        raise DocumentUntouchable("the memory file contains NUL bytes, so it is not text")
    text, encoding = _decode(data)
    bom = text.startswith(BOM)
    document = parse_text(text.removeprefix(BOM), encoding=encoding, bom=bom)
    if document.data != data:  # some bytes of GB18030 decode to a character that encodes otherwise
        raise DocumentUntouchable("the memory file would not survive being read and written")
    return document


def parse_stored(data: bytes) -> MemoryDocument:
    """The document in bytes that `encode` made: of any size, for what was recorded must be read again whatever it is.

    Refused, it could not even be made smaller. What is not UTF-8 is GB18030, by whichever way it may look damaged.
    """
    encoding: Encoding = "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        encoding = "gb18030"
        text = data.decode(encoding)
    return parse_text(text.removeprefix(BOM), encoding=encoding, bom=text.startswith(BOM))


def parse_text(text: str, *, encoding: Encoding = "utf-8", bom: bool = False) -> MemoryDocument:
    """The document in a text; any text is one."""
    return MemoryDocument(assign_sections(_split_into_blocks(lines_of(text))), encoding, bom)


def with_style_of(document: MemoryDocument, style_source: MemoryDocument) -> MemoryDocument:
    """With another one's encoding, byte order mark and line endings: who shows a text in a window loses them."""
    crlf = style_source.newline == "\r\n" and document.newline != style_source.newline
    text = document.text.replace("\r\n", "\n").replace("\n", "\r\n") if crlf else document.text
    return parse_text(text, encoding=style_source.encoding, bom=style_source.bom)


def reparse_range(document: MemoryDocument, low: int, high: int, text: str) -> MemoryDocument | None:
    """The document with this text in the place of its blocks from `low` to before `high`, read without the rest.

    None if the new text may change how the rest reads: the caller reads all of it then.
    """
    blocks, shape = document.blocks, document.shape
    if low == 0 or (blocks[0].kind is BlockKind.SEPARATOR and blocks[0].raw.rstrip() == "---"):
        return None  # it may become front matter
    before, after = blocks[low - 1].raw, blocks[high].raw if high < len(blocks) else ""
    if not _has_line_break_between(before, text or after) or (
        text and after and not _has_line_break_between(text, after)
    ):
        return None
    lines = lines_of(text)
    if any(_FENCE.match(line.rstrip()) for line in lines):
        return None
    middle = tuple([_classify_line(line) for line in lines])
    now, was = shape_of(middle), shape[low:high]
    footers = now.count(KIND_LETTERS[BlockKind.FOOTER])
    if footers > 1 or footers != was.count(KIND_LETTERS[BlockKind.FOOTER]):
        return None
    found = MemoryDocument(
        blocks[:low] + _with_section(middle, blocks[low - 1].section) + blocks[high:], *_encoding_and_bom(document)
    )
    if KIND_LETTERS[BlockKind.HEADING] in now or KIND_LETTERS[BlockKind.HEADING] in was:
        found = MemoryDocument(assign_sections(found.blocks), *_encoding_and_bom(document))
    ended, said, gone = (
        document.endings,
        count_line_endings(text),
        count_line_endings("".join([one.raw for one in blocks[low:high]])),
    )
    kept = (a + b - c for a, b, c in zip(ended, said, gone, strict=True))
    preset_cached(found, shape=shape[:low] + now + shape[high:], endings=tuple(kept))
    return found


def _has_line_break_between(text: str, following: str) -> bool:
    """Whether a line ends between the two, as it does in each alone."""
    return text.endswith("\n") or (text.endswith("\r") and not following.startswith("\n"))


def _with_section(blocks: tuple[Block, ...], section: Section) -> tuple[Block, ...]:
    return tuple([Block(one.kind, one.raw, section, one.level, one.title) for one in blocks]) if section else blocks


def _encoding_and_bom(document: MemoryDocument) -> tuple[Encoding, bool]:
    return document.encoding, document.bom


def assign_sections(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks, each with the section it stands in. The first heading of level 1 is the document's title."""
    placed: list[Block] = []
    path: list[tuple[int, str]] = []
    section: Section = ()
    titled = False
    for block in blocks:
        if block.kind is BlockKind.HEADING:
            path = [(level, title) for level, title in path if level < block.level]
            if block.level == 1 and not titled:
                titled = True
            else:
                path.append((block.level, block.title))
            section = tuple(title for _, title in path)
        moved = block.section != section
        placed.append(Block(block.kind, block.raw, section, block.level, block.title) if moved else block)
    return tuple(placed)


def _decode(data: bytes) -> tuple[str, Encoding]:
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        lenient = data.decode("utf-8", errors="replace")
    damaged = lenient.count("\ufffd")
    sound = sum(not char.isascii() for char in lenient) - damaged
    if sound > damaged:
        raise DocumentUntouchable(f"the memory file is UTF-8 with {damaged} damaged places")
    try:
        return data.decode("gb18030"), "gb18030"
    except UnicodeDecodeError:
        raise DocumentUntouchable("the memory file is neither UTF-8 nor GB18030") from None


def _split_into_blocks(lines: Sequence[str]) -> list[Block]:
    blocks: list[Block] = []
    at = _front_matter_end(lines)
    if at:
        blocks.append(Block(BlockKind.FRONT_MATTER, "".join(lines[:at])))
    fences = _FenceIndex(lines)
    footer = -1
    while at < len(lines):
        end = fences.end_of(at)
        raw = "".join(lines[at:end])
        block = Block(BlockKind.ENTRY, raw) if end - at > 1 else _classify_line(raw)
        if block.kind is BlockKind.FOOTER:
            if footer >= 0:
                blocks[footer] = Block(BlockKind.ENTRY, blocks[footer].raw)
            footer = len(blocks)
        blocks.append(block)
        at = end
    return blocks


def _classify_line(raw: str) -> Block:
    line = raw.rstrip()
    if not line:
        return Block(BlockKind.BLANK, raw)
    if match := _HEADING.match(line):
        title = (match[2] or "").strip()
        return Block(BlockKind.HEADING, raw, level=len(match[1]), title=strip_closing_hashes(title))
    if match := _FOOTER.match(line):
        return Block(BlockKind.FOOTER, raw, title=match[1].strip())
    if _PLACEHOLDER.match(line):
        return Block(BlockKind.PLACEHOLDER, raw)
    return Block(BlockKind.SEPARATOR if _is_separator(line) else BlockKind.ENTRY, raw)


def strip_closing_hashes(title: str) -> str:
    """``标题 ##`` is the heading 标题; ``C#`` stays C#."""
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else title


def _is_separator(line: str) -> bool:
    if line[-1] not in "-*_":
        return False
    marks = line.replace(" ", "").replace("\t", "")
    indent = len(line) - len(line.lstrip(" \t"))
    return len(marks) >= 3 and indent <= 3 and marks[0] in "-*_" and marks.count(marks[0]) == len(marks)


def _front_matter_end(lines: Sequence[str]) -> int:
    """How many lines at the top are front matter."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    keyed = False
    for at, line in enumerate(lines[1:MAX_FRONT_MATTER_LINES], start=1):
        if line.rstrip() in {"---", "..."}:
            return at + 1 if keyed else 0
        if _YAML_KEY.match(line):
            keyed = True
        elif not _YAML_OTHER.match(line) or (line.strip() and not keyed):
            return 0
    return 0


class _FenceIndex:
    """Where fenced blocks end.

    Closing lines are collected first and a vain search is remembered, so that a file full of unclosed fences is not
    read again for each.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._ends = [(at, match[1]) for at, line in enumerate(lines) if (match := _FENCE_END.match(line))]
        self._unclosed: dict[str, int] = {}  # mark -> shortest run of it known to have no end further down

    def end_of(self, at: int) -> int:
        """One past the last line of the block that begins at line `at`: the fence's end, or the next line."""
        opening = _FENCE.match(self._lines[at].rstrip()) if self._ends else None
        if opening is None:
            return at + 1
        marks = opening[1]
        if len(marks) < self._unclosed.get(marks[0], len(marks) + 1):
            first = bisect_right(self._ends, at, key=lambda pair: pair[0])
            for number in range(first, len(self._ends)):
                end, closing = self._ends[number]
                if closing.startswith(marks):
                    return end + 1
            self._unclosed[marks[0]] = len(marks)
        return at + 1
