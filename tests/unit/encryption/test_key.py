"""The key of a database: read, stored, never printed."""

import random
from typing import Final

import pytest

from sync.encryption.driver import DatabaseAccess
from sync.encryption.key import KEY_PREFIX, DatabaseKey

KEY: Final = DatabaseKey.new(random.Random(1).randbytes)


@pytest.mark.parametrize(
    "kept", [None, b"", KEY_PREFIX, KEY_PREFIX + b"zz", KEY_PREFIX + b"00" * 32, b"00" * 48, "ключ".encode()]
)
def test_what_is_no_key_is_none(kept: bytes | None) -> None:
    assert DatabaseKey.from_stored(kept) is None


def test_a_key_is_stored_as_a_line_and_never_printed() -> None:
    assert DatabaseKey.from_stored(KEY.to_stored() + b"\n") == KEY
    assert KEY.secret.hex() not in f"{KEY} {KEY!r} {DatabaseAccess(None, KEY)!r}"
