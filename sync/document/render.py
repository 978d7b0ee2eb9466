"""The document as bytes, byte for byte the file it was read from."""

from sync.document.model import Document, encode


def render(document: Document) -> bytes:
    """The bytes of a document."""
    return encode(document)
