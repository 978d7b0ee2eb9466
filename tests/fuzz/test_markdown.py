"""A sample of the damaged documents; `make fuzz` has them all."""

from pathlib import Path

from tests.fuzz.markdown import DESK, MARKDOWN


async def test_a_damaged_document_is_refused_or_comes_out_byte_for_byte_and_loses_no_untouched_line(
    tmp_path: Path,
) -> None:
    await MARKDOWN.probe(tmp_path)


async def test_a_damaged_file_keeps_every_line_of_its_owner(tmp_path: Path) -> None:
    await DESK.probe(tmp_path)
