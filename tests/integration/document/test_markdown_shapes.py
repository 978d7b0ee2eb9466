"""Shapes of Markdown that people keep, in four encodings and with three line endings: the text stays as it is."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from sync.archive.service import ArchiveService
from sync.document.surfaces.notices import Notice
from sync.log.ingest import DraftBuilder
from tests.integration.document.harness import DocumentHarness, open_document_harness
from tests.support import signer_of

SHAPES = Path(__file__).parents[2] / "data" / "markdown_shapes.txt"
STYLES = list(product(["utf-8", "utf-8-sig", "gb18030", "utf-16"], ["\n", "\r\n", "\r"]))


def cases() -> Iterator[object]:
    """Text, encoding and line ending; each of the twelve styles occurs five times and more."""
    for number, shape in enumerate(SHAPES.read_text("utf-8").split("%%% ")[1:]):
        name, _, text = shape.partition("\n")
        encoding, newline = STYLES[number * 5 % len(STYLES)]
        yield pytest.param(text if number % 3 else text.rstrip("\n"), encoding, newline, id=name.replace(" ", "_"))


@pytest.mark.parametrize(("text", "encoding", "newline"), list(cases()))
async def test_every_line_stays_as_the_user_wrote_it(tmp_path: Path, text: str, encoding: str, newline: str) -> None:
    original = text.replace("\n", newline).encode(encoding)
    encoding = "utf-8" if original.isascii() else encoding
    async with open_document_harness(tmp_path / "a") as harness:
        harness.file.write_bytes(original)
        await harness.record_and_reconcile("第一个问题")
        if Notice.UNTOUCHABLE in harness.memory.notices:
            assert encoding == "utf-16"
            assert harness.file.read_bytes() == original
            return
        lines = original.decode(encoding).rstrip(newline).split(newline)
        assert_has_lines(harness, lines, encoding, newline)

        at = len(lines) // 2
        lines.insert(at, "手写的一行")
        harness.file.write_bytes(
            with_line(harness.file.read_bytes().decode(encoding), lines, at, newline).encode(encoding)
        )
        await harness.record_and_reconcile("第二个问题")
        assert_has_lines(harness, lines, encoding, newline)

        archive, before = tmp_path / "all.xbm", harness.file.read_bytes()
        document = (await harness.memory.view()).document.data
        await archive_of(harness).export(
            archive, document=document, settings={}, passphrase=None, on_progress=lambda *_: None
        )
    async with open_document_harness(tmp_path / "b", device="device-b") as there:
        await archive_of(there).import_path(archive, passphrase=None, dry_run=False, on_progress=lambda *_: None)
        await there.memory.reconcile()
        assert there.file.read_bytes() == before


def with_line(text: str, lines: list[str], at: int, newline: str) -> str:
    """The file after the user has inserted line `at` of theirs where it belongs."""
    held = text.split(newline)
    place = 0
    for line in lines[:at]:
        place = held.index(line, place) + 1
    return newline.join([*held[:place], lines[at], *held[place:]])


def assert_has_lines(harness: DocumentHarness, lines: list[str], encoding: str, newline: str) -> None:
    """Every line of the user's is in the file, in its order."""
    held = iter(harness.file.read_bytes().decode(encoding).split(newline))
    missing = [line for line in lines if not any(line == one for one in held)]
    assert missing == []


def archive_of(harness: DocumentHarness) -> ArchiveService:
    drafts, signer = DraftBuilder(harness.redactor), signer_of(harness.log)
    return ArchiveService(harness.log, drafts, harness.memory.importer, signer, clock=harness.clock)
