"""The empty document."""

from sync.document.markdown.model import BlockKind
from sync.document.markdown.parse import parse
from sync.document.markdown.template import empty_document


def test_the_template_has_its_label_and_no_entries() -> None:
    document = parse(empty_document("2026/1/8 15:49:12"))
    assert document.label == "2026/1/8 15:49:12"
    assert document.entries == ()
    assert sum(block.kind is BlockKind.PLACEHOLDER for block in document.blocks) == 6
    assert document.data == empty_document("2026/1/8 15:49:12")
