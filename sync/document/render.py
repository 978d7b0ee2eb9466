"""The document as bytes, byte for byte the file it was read from."""

from sync.document.markdown.model import MemoryDocument, encode


def render(document: MemoryDocument) -> bytes:
    """The bytes of a document."""
    return encode(document)
