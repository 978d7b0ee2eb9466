"""Encrypt a stream with a passphrase: scrypt derives the key, ChaCha20-Poly1305 encrypts chunks.

Format: magic, 16 bytes of salt, then chunks of 64 KiB, each with a tag of 16 bytes; the last chunk is shorter or empty.
The nonce is the chunk's number and whether it is the last, so no chunk can be dropped, swapped or cut off. The salt,
and with it the key, is new for every file, so no nonce repeats under one key.
"""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Final

from sync.errors import InvalidInput

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

MAGIC: Final = b"xiaobai-memory sealed 1\n"
SALT_BYTES: Final = 16
CHUNK_BYTES: Final = 64 * 1024
TAG_BYTES: Final = 16
SCRYPT_COST: Final = 2**15  # scrypt's n; with r = 8: 32 MiB and a tenth of a second


def _cipher(passphrase: str, salt: bytes) -> "ChaCha20Poly1305":
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # noqa: PLC0415 - only for encrypted archives
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt  # noqa: PLC0415 - likewise

    return ChaCha20Poly1305(Scrypt(salt=salt, length=32, n=SCRYPT_COST, r=8, p=1).derive(passphrase.encode()))


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


class EncryptingWriter(io.RawIOBase):
    """Encrypts what is written to it. `close` writes the last chunk and leaves the file open."""

    def __init__(self, file: BinaryIO, passphrase: str, random_bytes: Callable[[int], bytes]) -> None:
        salt = random_bytes(SALT_BYTES)
        self._file, self._cipher = file, _cipher(passphrase, salt)
        self._buffer, self._chunk_number = bytearray(), 0
        file.write(MAGIC + salt)

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        piece = bytes(data)  # type: ignore[call-overload]  # any buffer
        self._buffer += piece
        while len(self._buffer) >= CHUNK_BYTES:
            self._write_chunk(bytes(self._buffer[:CHUNK_BYTES]), last=False)
            del self._buffer[:CHUNK_BYTES]
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._write_chunk(bytes(self._buffer), last=True)
        super().close()

    def _write_chunk(self, chunk: bytes, *, last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._chunk_number, last=last), chunk, MAGIC))
        self._chunk_number += 1


class DecryptingReader(io.RawIOBase):
    """Decrypts a file. Raises InvalidInput if the passphrase is wrong or the file is damaged or cut off."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        if file.read(len(MAGIC)) != MAGIC:
            raise InvalidInput("this file is not sealed with a passphrase", field="passphrase")
        self._file, self._cipher = file, _cipher(passphrase, file.read(SALT_BYTES))
        self._buffer, self._chunk_number, self._is_at_end = b"", 0, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        target = memoryview(buffer)  # type: ignore[arg-type]  # any writable buffer
        while not self._buffer and not self._is_at_end:
            self._buffer = self._read_chunk()
        chunk = self._buffer[: len(target)]
        target[: len(chunk)] = chunk
        self._buffer = self._buffer[len(chunk) :]
        return len(chunk)

    def _read_chunk(self) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above

        chunk = self._file.read(CHUNK_BYTES + TAG_BYTES)
        self._is_at_end = len(chunk) < CHUNK_BYTES + TAG_BYTES
        try:
            plain = self._cipher.decrypt(_nonce(self._chunk_number, last=self._is_at_end), chunk, MAGIC)
        except (InvalidTag, ValueError):
            if self._chunk_number:
                raise InvalidInput(
                    "the archive is damaged or cut off", field="path", hint="Take another copy."
                ) from None
            raise InvalidInput(
                "the passphrase does not open this archive",
                field="passphrase",
                hint="Type it again; nothing was taken in.",
            ) from None
        self._chunk_number += 1
        return plain
