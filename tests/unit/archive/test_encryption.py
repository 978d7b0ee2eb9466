"""The encrypted stream: a cut at the end of a chunk is detected."""

import io
import os

import pytest

from sync.archive.encryption import CHUNK_BYTES, MAGIC, SALT_BYTES, TAG_BYTES, DecryptingReader, EncryptingWriter
from sync.errors import InvalidInput


def test_a_stream_cut_off_at_the_end_of_a_chunk_is_refused() -> None:
    said, file = os.urandom(2 * CHUNK_BYTES), io.BytesIO()
    with EncryptingWriter(file, "a long passphrase", os.urandom) as sealing:
        sealing.write(said)
    whole = file.getvalue()

    assert DecryptingReader(io.BytesIO(whole), "a long passphrase").read() == said
    for chunks in (1, 2):
        cut = whole[: len(MAGIC) + SALT_BYTES + chunks * (CHUNK_BYTES + TAG_BYTES)]
        with pytest.raises(InvalidInput, match="damaged"):
            DecryptingReader(io.BytesIO(cut), "a long passphrase").read()
