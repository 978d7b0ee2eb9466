"""The sealed stream itself: what is cut off at the end of a chunk is noticed, whatever lies within."""

import io
import os

import pytest

from sync.archive.sealed import CHUNK, MAGIC, SALT, TAG, Sealing, Unsealing
from sync.errors import InvalidInput


def test_a_stream_cut_off_where_a_chunk_ends_is_not_taken_for_a_whole_one() -> None:
    said, file = os.urandom(2 * CHUNK), io.BytesIO()
    with Sealing(file, "a long passphrase", os.urandom) as sealing:
        sealing.write(said)
    whole = file.getvalue()

    assert Unsealing(io.BytesIO(whole), "a long passphrase").read() == said
    for chunks in (1, 2):
        cut = whole[: len(MAGIC) + SALT + chunks * (CHUNK + TAG)]
        with pytest.raises(InvalidInput, match="damaged"):
            Unsealing(io.BytesIO(cut), "a long passphrase").read()
