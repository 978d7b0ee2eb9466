"""The key of one database. Pure."""

import binascii
from collections.abc import Callable
from typing import Final, NamedTuple

SECRET_BYTES: Final = 32  # AES-256
SALT_BYTES: Final = 16
MASKED: Final = "**********"
KEY_PREFIX: Final = b"sqlcipher4:"  # before the hexadecimal digits, as it is kept


class DatabaseKey(NamedTuple):
    """What SQLCipher needs to know, given to it as it is: nothing is derived from a passphrase.

    The salt is no secret (the file begins with it). It is kept all the same, so that damage to the first bytes of the
    file does not cost the rest of it.
    """

    secret: bytes
    salt: bytes

    def __repr__(self) -> str:
        return MASKED

    @classmethod
    def new(cls, random_bytes: Callable[[int], bytes]) -> "DatabaseKey":
        return cls(random_bytes(SECRET_BYTES), random_bytes(SALT_BYTES))

    @classmethod
    def from_stored(cls, stored: bytes | None) -> "DatabaseKey | None":
        """The stored key; None if there is none or it is damaged."""
        if stored is None or not stored.startswith(KEY_PREFIX):
            return None
        try:
            raw = binascii.unhexlify(stored[len(KEY_PREFIX) :].strip())
        except binascii.Error:
            return None
        return cls(raw[:SECRET_BYTES], raw[SECRET_BYTES:]) if len(raw) == SECRET_BYTES + SALT_BYTES else None

    def to_stored(self) -> bytes:
        """As ASCII, for a secret store."""
        return KEY_PREFIX + self._hex.encode()

    @property
    def sql_literal(self) -> str:
        """For `pragma key` and `attach … key`."""
        return f"x'{self._hex}'"

    @property
    def _hex(self) -> str:
        return (self.secret + self.salt).hex()
