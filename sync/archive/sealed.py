"""A stream sealed with a passphrase: scrypt makes the key, ChaCha20-Poly1305 seals chunk by chunk.

    magic, 16 bytes of salt, then chunks of 64 KiB, each with a tag of 16 bytes; the last one is shorter or empty

Decisions
    The nonce of a chunk is its number and whether it is the last, so chunks cannot be left out, exchanged or cut off
    at the end. The salt is new for every file, and so is the key: a nonce never comes twice under one key.
    A wrong passphrase and a damaged beginning look the same, and are told as what they mostly are.
"""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Final

from sync.errors import InvalidInput

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

MAGIC: Final = b"xiaobai-memory sealed 1\n"
SALT: Final = 16
CHUNK: Final = 64 * 1024
TAG: Final = 16
COST: Final = 2**15  # scrypt's n; with r = 8 it takes 32 MiB and a tenth of a second


def _cipher(passphrase: str, salt: bytes) -> "ChaCha20Poly1305":
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # noqa: PLC0415 - only where asked
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt  # noqa: PLC0415 - likewise

    return ChaCha20Poly1305(Scrypt(salt=salt, length=32, n=COST, r=8, p=1).derive(passphrase.encode()))


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


class Sealing(io.RawIOBase):
    """Write plain bytes to it; `close` writes the last chunk and leaves the file beneath open."""

    def __init__(self, beneath: BinaryIO, passphrase: str, random_bytes: Callable[[int], bytes]) -> None:
        salt = random_bytes(SALT)
        self._beneath, self._cipher = beneath, _cipher(passphrase, salt)
        self._waiting, self._number = bytearray(), 0
        beneath.write(MAGIC + salt)

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        piece = bytes(data)  # type: ignore[call-overload]  # any buffer
        self._waiting += piece
        while len(self._waiting) >= CHUNK:
            self._seal(bytes(self._waiting[:CHUNK]), last=False)
            del self._waiting[:CHUNK]
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._seal(bytes(self._waiting), last=True)
        super().close()

    def _seal(self, chunk: bytes, *, last: bool) -> None:
        self._beneath.write(self._cipher.encrypt(_nonce(self._number, last=last), chunk, MAGIC))
        self._number += 1


class Unsealing(io.RawIOBase):
    """Read plain bytes from it. InvalidInput where the passphrase is another one, or the file damaged or cut."""

    def __init__(self, beneath: BinaryIO, passphrase: str) -> None:
        if beneath.read(len(MAGIC)) != MAGIC:
            raise InvalidInput("this file is not sealed with a passphrase", field="passphrase")
        self._beneath, self._cipher = beneath, _cipher(passphrase, beneath.read(SALT))
        self._ready, self._number, self._over = b"", 0, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        target = memoryview(buffer)  # type: ignore[arg-type]  # any writable buffer
        while not self._ready and not self._over:
            self._ready = self._open()
        taken = self._ready[: len(target)]
        target[: len(taken)] = taken
        self._ready = self._ready[len(taken) :]
        return len(taken)

    def _open(self) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above

        chunk = self._beneath.read(CHUNK + TAG)
        self._over = len(chunk) < CHUNK + TAG
        try:
            plain = self._cipher.decrypt(_nonce(self._number, last=self._over), chunk, MAGIC)
        except (InvalidTag, ValueError):
            if self._number:
                raise InvalidInput(
                    "the archive is damaged or cut off", field="path", hint="Take another copy."
                ) from None
            raise InvalidInput(
                "the passphrase does not open this archive",
                field="passphrase",
                hint="Type it again; nothing was taken in.",
            ) from None
        self._number += 1
        return plain
