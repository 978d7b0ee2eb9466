"""Documents that a person, an editor, a crash or an enemy may leave behind.

Two campaigns: `markdown` looks at what is pure (parse, render, plan), `harness` lays the same documents before a real
memory file with its log.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from sync.document.markdown.model import Block, BlockKind, Entry, MemoryDocument, MergePlan, Snapshot, Version
from sync.document.markdown.parse import MAX_BYTES, parse
from sync.document.merge.three_way import plan_merge
from sync.document.surfaces.notices import Notice
from sync.errors import DocumentUntouchable
from tests.fuzz.campaign import Campaign, FuzzCase, FuzzCases
from tests.integration.document.harness import DocumentHarness, open_document_harness
from tests.unit.document.examples import FULL, SHORT, numbered

CORPUS: Final = Path(__file__).with_name("corpus")
MOST_CHANGES: Final = 4
HUGE_LINE: Final = 200_000
BIDI: Final = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
ODD: Final = "\u200b\u200d\ufeff\u2028\u2029\x85\x0b\x0c\x1c\x7f\x1b\x08\u3000\ud7ff\U0010ffff\u0301\U000e0041"
STRUCTURE: Final = (
    "# AI 对话记忆", "## 用户偏好", "## 重要对话记录", "### 2026/1/8", "### 2026-1-7", "####### 七", "#", "---", "***",
    "- （待补充）", "**最后更新**：2026/1/8 15:49:12", "**最后更新**：", "最后更新：", "```", "````python", "~~~",
    "    ```",
    "- ```", "> ```", "| a | b |\n|---|---|\n| 1 | 2 |", "===", "<!--", "-->", "<memory>", "[链]: http://x", "\\# 不是",
    "- [ ] 任务", "1) 一", "key: value", "---\ntitle: x\n---", "- 用户问：", "- AI 答：", "\t- 缩进", "$$", "[^1]: 注",
)  # fmt: skip

Change = Callable[[bytes, random.Random], bytes]


def corpus_documents() -> list[bytes]:
    """The documents that are damaged."""
    return [FULL.encode(), SHORT.encode(), *(path.read_bytes() for path in sorted(CORPUS.glob("*.md")))]


# --- changes -------------------------------------------------------------------------------------------------


def _flip(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return chance.choice([data[:start], data[start:], data[:start] + data[end:]])


def _bytes_in(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return (
        data[:at] + chance.choice([b"\0", b"\xff", b"\r", b"\n\n\n", b"\xef\xbb\xbf", chance.randbytes(3)]) + data[at:]
    )


def _lines(change: Callable[[list[bytes], random.Random], None]) -> Change:
    """A change among whole lines."""

    def changed(data: bytes, chance: random.Random) -> bytes:
        lines = data.splitlines(keepends=True)
        if lines:
            change(lines, chance)
        return b"".join(lines)

    return changed


def _duplicate(lines: list[bytes], chance: random.Random) -> None:
    start = chance.randrange(len(lines))
    block = lines[start : start + chance.randrange(1, 12)]
    at = chance.randrange(len(lines) + 1)
    lines[at:at] = block * chance.randrange(1, 4)


def _move(lines: list[bytes], chance: random.Random) -> None:
    start = chance.randrange(len(lines))
    block = lines[start : start + chance.randrange(1, 8)]
    del lines[start : start + len(block)]
    at = chance.randrange(len(lines) + 1)
    lines[at:at] = block


def _drop(lines: list[bytes], chance: random.Random) -> None:
    start = chance.randrange(len(lines))
    del lines[start : start + chance.randrange(1, 10)]


def _structure(lines: list[bytes], chance: random.Random) -> None:
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(STRUCTURE).encode() + chance.choice([b"\n", b"\r\n"]))


def _indent(lines: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    lines[at] = chance.choice(["  ", "\t", "> ", "\u3000", "\u00a0", "- ", "## ", "\\"]).encode() + lines[at]


def _characters(lines: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    line = lines[at].decode("utf-8", errors="replace")
    where = chance.randrange(len(line) + 1)
    odd_text = "".join(chance.choice(BIDI + ODD) for _ in range(chance.randrange(1, 5)))
    lines[at] = (line[:where] + odd_text + line[where:]).encode()


def _huge(lines: list[bytes], chance: random.Random) -> None:
    unit = chance.choice([b"x", "记".encode(), b"`", b"- ", b"#", b"|", b"\\", b"[", "\u0301".encode()])
    lines.insert(chance.randrange(len(lines) + 1), unit * (chance.randrange(1, HUGE_LINE) // len(unit)) + b"\n")


def _fences(lines: list[bytes], chance: random.Random) -> None:
    mark = chance.choice([b"`", b"~"])
    for _ in range(chance.randrange(1, 6)):
        fence = b" " * chance.randrange(3) + mark * chance.randrange(3, 7) + chance.choice([b"", b"sh", b" "])
        lines.insert(chance.randrange(len(lines) + 1), fence + b"\n")


def _rename(lines: list[bytes], chance: random.Random) -> None:
    """A heading, or the footer, reads differently."""
    marked = [at for at, line in enumerate(lines) if line.lstrip().startswith((b"#", b"**"))]
    if marked:
        at = chance.choice(marked)
        old = lines[at].decode("utf-8", errors="replace").rstrip()
        new = [old + " 改", old.replace("：", ":"), old[:-1], old + " ##", old.replace("2026", "1999"), old * 2]
        lines[at] = chance.choice(new).encode() + b"\n"


def _endings(data: bytes, chance: random.Random) -> bytes:
    endings = [b"\r\n", b"\r", b"\n"]
    if chance.random() < 0.5:
        return data.replace(b"\n", chance.choice(endings))
    return b"".join(line.rstrip(b"\r\n") + chance.choice(endings) for line in data.splitlines(keepends=True))


def _encoding(data: bytes, chance: random.Random) -> bytes:
    text = data.decode("utf-8", errors="replace")
    return text.encode(chance.choice(["gb18030", "gbk", "utf-16", "utf-8-sig", "big5", "utf-32"]), errors="replace")


CHANGES: Final[tuple[Change, ...]] = (
    _flip, _flip, _cut, _bytes_in, _endings, _encoding, *map(_lines, (
        _duplicate, _duplicate, _move, _drop, _structure, _structure, _indent, _characters, _huge, _fences, _rename,
    )),
)  # fmt: skip


def mutate(case: FuzzCase, documents: Sequence[bytes]) -> tuple[bytes, bytes]:
    """A document and what became of it."""
    original = data = case.chance.choice(documents)
    for _ in range(case.chance.randrange(1, MOST_CHANGES + 1)):
        data = case.chance.choice(CHANGES)(data, case.chance)
    return original, data


# --- what must hold ------------------------------------------------------------------------------------------


async def attack_parser(cases: FuzzCases, _: Path) -> None:
    documents = corpus_documents()
    for case in cases:
        original, data = mutate(case, documents)
        disk = _parsed(data)
        if disk is not None:
            assert disk.data == data, "the bytes did not survive"
            _check_plan(parse(original), disk)


def _parsed(data: bytes) -> MemoryDocument | None:
    try:
        return parse(data)
    except DocumentUntouchable:
        return None


def _check_plan(original: MemoryDocument, disk: MemoryDocument) -> None:
    """The rendering equals the file, and no line in both loses its id."""
    base = Version.of(1, Snapshot(original, tuple(f"e{at}" for at in range(len(original.entries)))))
    made = plan_merge(base, base, disk, numbered())
    left = [disk.data]
    passed = next((at for at, block in enumerate(disk.blocks) if _is_passed_footer(block, base)), None)
    if passed is not None:  # our footer with text below it: the next version has one at its end
        left.append(MemoryDocument(disk.blocks[:passed] + disk.blocks[passed + 1 :], disk.encoding, disk.bom).data)
    assert made.merged.document.data in left, "the fold changed what a hand left"
    assert _applied(base.snapshot, made) == {entry.entry_id: entry for entry in made.merged.entries}
    before = {entry.entry_id: entry for entry in base.snapshot.entries}
    kept = Counter(_place(entry) for entry in made.merged.entries if before.get(entry.entry_id) == entry)
    untouched = Counter(map(_place, original.entries)) & Counter(map(_place, disk.entries))
    assert not untouched - kept, f"lines that nobody touched are told as changed: {untouched - kept}"


def _is_passed_footer(block: Block, base: Version) -> bool:
    return block.kind is BlockKind.ENTRY and bool(block.title) and block.title == base.label


def _place(line: Entry | Block) -> tuple[tuple[str, ...], str]:
    return line.section, line.text


def _applied(known: Snapshot, made: MergePlan) -> dict[str, Entry]:
    entries = {entry.entry_id: entry for entry in known.entries}
    for operation in made.operations:
        entries.pop(operation.entry_id, None)
        if hasattr(operation, "after") or hasattr(operation, "base_text"):
            entries[operation.entry_id] = Entry(operation.entry_id, operation.text, operation.section)
    return entries


async def attack_memory_file(cases: FuzzCases, folder: Path) -> None:
    documents = corpus_documents()
    for case in cases:
        original, data = mutate(case, documents)
        async with open_document_harness(folder / f"harness-{case.number}") as harness:
            harness.file.write_bytes(original)
            await harness.memory.reconcile()
            harness.file.write_bytes(data)
            await harness.memory.reconcile()
            await _check_ingested(harness, data)


async def _check_ingested(harness: DocumentHarness, data: bytes) -> None:
    """What the user left is on disk, to the byte, or kept as a version; and the next words find their place."""
    disk, notices = _parsed(data), set(harness.memory.notices)
    if disk is None:
        assert Notice.UNTOUCHABLE in notices
    if disk is None or Notice.MASS_DELETE in notices:
        assert harness.file.read_bytes() == data, "a file that is not understood was written"
    elif not disk.is_blank:
        lost = _text_of(disk) - _text_of(parse(harness.file.read_bytes()))
        assert not lost, f"lines of the user are gone: {lost}"
    await harness.record_exchange("水獭问了什么")
    await harness.memory.reconcile()
    if disk is None or (Notice.MASS_DELETE in notices and not disk.is_blank):
        assert harness.file.read_bytes() == data, "a file that is not understood was written"
    else:
        now = parse(harness.file.read_bytes())
        assert "- 用户问：水獭问了什么" in [entry.text for entry in now.entries]
        assert not _text_of(disk) - _text_of(now)


def _text_of(document: MemoryDocument) -> Counter[str]:
    """What entries say, line by line: an open fence that meets another one makes one entry of those between."""
    return Counter(line for entry in document.entries for line in entry.text.split("\n"))


def too_large() -> bytes:
    return b"- x\n" * (MAX_BYTES // 4 + 1)


MARKDOWN: Final = Campaign("markdown", 6_000, 200, attack_parser)
DESK: Final = Campaign("harness", 400, 8, attack_memory_file)
