"""Parse bytes into blocks. `MemoryDocument.data` returns the same bytes for every accepted file.

Text that is not structure is an entry, one for each line; so is each line of a closed HTML comment, and a closed fenced
block is one. Unclosed ones are ordinary lines, which appear while a person types. The footer has exactly the form that
the program writes, and only blank lines after it. UTF-8 with a few invalid bytes is refused: read as GB18030 it would
become plausible nonsense.
"""

import re
import unicodedata
from bisect import bisect_right
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

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
from sync.document.markdown.template import canonical_title
from sync.document.markdown.words import WORDS
from sync.errors import DocumentUntouchable

MAX_BYTES: Final = 4 * 1024 * 1024  # a memory that fits into a prompt has a thousandth of this
MAX_FRONT_MATTER_LINES: Final = 200  # more than any real one; bounds the search for its end

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?\Z", re.DOTALL)
_PLACEHOLDER: Final = re.compile(r"\s*[-*+]\s*[（(]\s*(?:待补充|to be added)\s*[)）]\s*\Z")
_FOOTER: Final = re.compile(
    rf"(?:{'|'.join(re.escape(words.footer_prefix.rstrip()) for words in WORDS.values())})[ \t]*"
    r"(\d{4}/[1-9]\d?/[1-9]\d? \d\d:\d\d:\d\d(?: · \d+)?)\s*\Z",
    re.ASCII,
)
_FENCE: Final = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`]*\Z)|~{3,})", re.DOTALL)
_COMMENT_MARK: Final = "<!--"
_COMMENT: Final = re.compile(rf" {{0,3}}{_COMMENT_MARK}")
_FENCE_END: Final = re.compile(r"\s*(`{3,}|~{3,})\s*\Z")
MIN_SPACED: Final = 3  # spaces between Chinese characters; fewer say nothing
_FIRST_KANA, _LAST_KANA, _FIRST_SUPPLEMENTARY = "\u3041", "\u30fe", 0x10000
_SPACED: Final = re.compile(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])")  # Korean has a space after each word
_SAVE_AS_UTF8: Final = "Save it as UTF-8 in an editor that shows it correctly; until then it is left as it is."
_YAML_KEY: Final = re.compile(r"[^\W\d][\w .-]*:(?:\s|\Z)")
_YAML_OTHER: Final = re.compile(r"\s|- |# |\Z")


def parse(data: bytes) -> MemoryDocument:
    """Parse a file. Raises DocumentUntouchable for binary data, unknown encodings and more than `MAX_BYTES`."""
    if len(data) > MAX_BYTES:
        raise DocumentUntouchable(f"the memory file has {len(data)} bytes, the limit is {MAX_BYTES}")
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise DocumentUntouchable("the memory file is UTF-16", hint=_SAVE_AS_UTF8)
    if b"\0" in data:
        raise DocumentUntouchable("the memory file contains NUL bytes: it is no text, or UTF-16", hint=_SAVE_AS_UTF8)
    text, encoding = _decode(data)
    bom = text.startswith(BOM)
    document = parse_text(text.removeprefix(BOM), encoding=encoding, bom=bom)
    if document.data != data:  # some bytes of GB18030 decode to a character that encodes otherwise
        raise DocumentUntouchable("the memory file would not survive being read and written")
    return document


def parse_stored(data: bytes) -> MemoryDocument:
    """Parse bytes that this program stored, of any size. What is not UTF-8 is GB18030."""
    encoding: Encoding = "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        encoding = "gb18030"
        text = data.decode(encoding)
    return parse_text(text.removeprefix(BOM), encoding=encoding, bom=text.startswith(BOM))


def parse_text(text: str, *, encoding: Encoding = "utf-8", bom: bool = False) -> MemoryDocument:
    """Parse a text. Any text is a document."""
    return MemoryDocument(assign_sections(_split_into_blocks(lines_of(text))), encoding, bom)


def with_style_of(document: MemoryDocument, style_source: MemoryDocument) -> MemoryDocument:
    """The document with the encoding, byte order mark and line endings of another, which a text field in a UI loses."""
    crlf = style_source.newline == "\r\n" and document.newline != style_source.newline
    text = document.text.replace("\r\n", "\n").replace("\n", "\r\n") if crlf else document.text
    return parse_text(text, encoding=style_source.encoding, bom=style_source.bom)


def reparse_range(document: MemoryDocument, low: int, high: int, text: str) -> MemoryDocument | None:
    """Replace the blocks from `low` to before `high` by a text, and parse only that text.

    None if the text may change how other lines parse; the caller then parses the whole document.
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
    if any(_FENCE.match(line.rstrip()) for line in lines) or _COMMENT_MARK in text or _COMMENT_MARK in document.text:
        return None
    middle = tuple([_classify_line(line) for line in lines])
    now, was = shape_of(middle), shape[low:high]
    found = MemoryDocument(
        blocks[:low] + _with_section(middle, blocks[low - 1].section) + blocks[high:], *_encoding_and_bom(document)
    )
    if KIND_LETTERS[BlockKind.HEADING] in now or KIND_LETTERS[BlockKind.HEADING] in was:
        found = MemoryDocument(assign_sections(found.blocks), *_encoding_and_bom(document))
    shape = shape[:low] + now + shape[high:]
    if _changes_footer(found.blocks, shape):
        return None
    endings, added, removed = (
        document.endings,
        count_line_endings(text),
        count_line_endings("".join([one.raw for one in blocks[low:high]])),
    )
    now_endings = (a + b - c for a, b, c in zip(endings, added, removed, strict=True))
    preset_cached(found, shape=shape, endings=tuple(now_endings))
    return found


def _changes_footer(blocks: Sequence[Block], shape: str) -> bool:
    """Whether a line became or ceased to be the footer because of what follows it."""
    last = len(shape.rstrip(KIND_LETTERS[BlockKind.BLANK])) - 1
    if shape.find(KIND_LETTERS[BlockKind.FOOTER]) not in {-1, last}:
        return True
    return last >= 0 and blocks[last].kind is BlockKind.ENTRY and _FOOTER.match(blocks[last].raw.rstrip()) is not None


def _has_line_break_between(text: str, following: str) -> bool:
    """Whether a line ends between the two texts when they are joined."""
    return text.endswith("\n") or (text.endswith("\r") and not following.startswith("\n"))


def _with_section(blocks: tuple[Block, ...], section: Section) -> tuple[Block, ...]:
    return tuple([Block(one.kind, one.raw, section, one.level, one.title) for one in blocks]) if section else blocks


def _encoding_and_bom(document: MemoryDocument) -> tuple[Encoding, bool]:
    return document.encoding, document.bom


def assign_sections(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks with their canonical sections. The first heading of level 1 is the document's title."""
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
                path.append((block.level, canonical_title(path[-1][1] if path else "", block.title)))
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
    with suppress(UnicodeDecodeError):
        if is_plausible_chinese(text := data.decode("gb18030")):
            return text, "gb18030"
    raise DocumentUntouchable("the memory file is neither UTF-8 nor GB18030", hint=_SAVE_AS_UTF8)


def is_plausible_chinese(text: str) -> bool:
    """Whether text that was read as GB18030 is written in it, and not in Big5, Shift-JIS, EUC or Windows-1252.

    Those give characters of private use, rare characters in the place of frequent ones, kana, or words between spaces.
    """
    wide = [char for char in text if not char.isascii() and ord(char) < _FIRST_SUPPLEMENTARY]
    if any(unicodedata.category(char) in {"Co", "Cn"} for char in wide):
        return False
    frequent = len("".join(wide).encode("gb2312", "ignore")) // 2
    kana, spaced = sum(_FIRST_KANA <= char <= _LAST_KANA for char in wide), len(_SPACED.findall(text))
    if spaced >= MIN_SPACED and spaced > len(wide) * 0.25:
        return False
    return frequent >= len(wide) * 0.5 and kana <= len(wide) * 0.3


def _split_into_blocks(lines: Sequence[str]) -> list[Block]:
    blocks: list[Block] = []
    at = _front_matter_end(lines)
    if at:
        blocks.append(Block(BlockKind.FRONT_MATTER, "".join(lines[:at])))
    fences = _FenceIndex(lines)
    comment_end = 0  # -1: no later comment ends
    footer = -1
    while at < len(lines):
        if at >= comment_end >= 0 and _COMMENT.match(lines[at]):
            comment_end = next((end + 1 for end in range(at, len(lines)) if "-->" in lines[end]), -1)
        end = fences.end_of(at)
        end = at + 1 if at < comment_end < end else end
        raw = "".join(lines[at:end])
        is_text = end - at > 1 or (at < comment_end and raw.strip())
        block = Block(BlockKind.ENTRY, raw) if is_text else _classify_line(raw)
        if footer >= 0 and block.kind is not BlockKind.BLANK:
            blocks[footer], footer = replace(blocks[footer], kind=BlockKind.ENTRY), -1
        if block.kind is BlockKind.FOOTER:
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
    """Remove closing hashes: ``标题 ##`` is the heading 标题, ``C#`` stays C#."""
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else title


def _is_separator(line: str) -> bool:
    if line[-1] not in "-*_":
        return False
    marks = line.replace(" ", "").replace("\t", "")
    indent = len(line) - len(line.lstrip(" \t"))
    return len(marks) >= 3 and indent <= 3 and marks[0] in "-*_" and marks.count(marks[0]) == len(marks)


def opens_fence(text: str) -> bool:
    """Whether an entry is a line that opens a fenced block which nothing closes."""
    return "\n" not in text and _FENCE.match(text) is not None


def _front_matter_end(lines: Sequence[str]) -> int:
    """The number of lines of front matter; it must look like YAML, for a separator may be the first line of a file."""
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
    """The ends of fenced blocks.

    Closing lines are collected first and failed searches remembered, so that a file full of unclosed fences is not
    searched again for each.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._ends = [(at, match[1]) for at, line in enumerate(lines) if (match := _FENCE_END.match(line))]
        self._unclosed: dict[str, int] = {}  # mark -> length of the shortest fence without an end below

    def end_of(self, at: int) -> int:
        """The index after the block that begins at line `at`: after its closing fence, else the next line."""
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
