"""The pages of an encrypted database without SQLCipher: whether a key fits, and all of them as a plain database.

SQLCipher opens nothing whose first page is damaged, and answers nothing from a damaged one further on. Each page is
encrypted and authenticated for itself, so what is damaged costs only its own: decrypted here, in memory, the file is a
plain database with the same damage, from which the salvage reads rows as it does from any other.

The format (SQLCipher 4, zetetic.net/sqlcipher/design): pages of 4096 bytes, of which the last 80 are the initialisation
vector (16) and the HMAC-SHA512 (64) of ciphertext, vector and page number; the first 16 bytes of the file are the salt.
The HMAC's key is derived from key and salt. A write-ahead log is SQLite's own, with such pages in its frames.
"""

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sync.files import told
from sync.vault.key import SALT_BYTES, DatabaseKey

PAGE: Final = 4096
VECTOR: Final = slice(PAGE - 80, PAGE - 64)
SEAL: Final = slice(PAGE - 64, PAGE)
MAGIC: Final = b"SQLite format 3\0"  # in the place of the salt, in a plain database
SALT_MASK: Final = 0x3A
ROUNDS: Final = 2  # of the derivation; the key is random already
FORMAT_VERSIONS: Final = slice(18, 20)  # of the header: 2 for WAL, 1 without (sqlite.org/fileformat2.html, 1.3)
WITHOUT_WAL: Final = b"\x01\x01"

WAL_HEADER: Final = 32
WAL_SALT: Final = slice(16, 24)  # in the header; the second eight bytes of each frame repeat it
FRAME_HEADER: Final = 24


def fits(key: DatabaseKey, database: Path) -> bool:
    """Whether any page of the database was encrypted with this key. Reads until one is found. Raises StorageError."""
    seal = _Seal(key)
    with told(database), database.open("rb") as file:
        number = 1
        while len(page := file.read(PAGE)) == PAGE:
            if seal.holds(number, page):
                return True
            number += 1
    return False


def decrypted(data: bytes, wal: bytes, key: DatabaseKey) -> bytes:
    """A database with what its write-ahead log had committed, as the bytes of a plain one that has no such log.

    What is damaged stays damaged: a first page whose seal is broken does not begin as a database does. A last page that
    was cut off is left out.
    """
    seal = _Seal(key)
    found = {number: data[(number - 1) * PAGE : number * PAGE] for number in range(1, len(data) // PAGE + 1)}
    found |= _committed(wal, seal)
    image = bytearray()
    for number in range(1, max(found, default=0) + 1):
        image += _plain(number, found[number], key) if number in found else bytes(PAGE)
    if image:
        image[FORMAT_VERSIONS] = WITHOUT_WAL
    if 1 in found and seal.holds(1, found[1]):
        image[: len(MAGIC)] = MAGIC
    return bytes(image)


def _committed(wal: bytes, seal: "_Seal") -> dict[int, bytes]:
    """The newest page of each number, up to the last commit before anything that is torn or from an earlier round."""
    committed: dict[int, bytes] = {}
    since: dict[int, bytes] = {}
    for number, ends, page in _frames(wal):
        if not seal.holds(number, page):
            break
        since[number] = page
        if ends:
            committed |= since
            since = {}
    return committed


def _frames(wal: bytes) -> Iterator[tuple[int, bool, bytes]]:
    """Page number, whether a commit ends here, and the page, of each whole frame of this round."""
    for at in range(WAL_HEADER, len(wal) - FRAME_HEADER - PAGE + 1, FRAME_HEADER + PAGE):
        header = wal[at : at + FRAME_HEADER]
        if header[8:16] != wal[WAL_SALT]:
            return
        page = wal[at + FRAME_HEADER : at + FRAME_HEADER + PAGE]
        yield int.from_bytes(header[:4], "big"), header[4:8] != bytes(4), page


def _plain(number: int, page: bytes, key: DatabaseKey) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415 - 30 ms, in need only

    decryptor = Cipher(algorithms.AES(key.secret), modes.CBC(page[VECTOR])).decryptor()
    salt = 0 if number > 1 else SALT_BYTES
    return page[:salt] + decryptor.update(page[salt : VECTOR.start]) + page[VECTOR.start :]


class _Seal:
    """The HMAC of pages under one key."""

    def __init__(self, key: DatabaseKey) -> None:
        salt = bytes(byte ^ SALT_MASK for byte in key.salt)
        self._key = hashlib.pbkdf2_hmac("sha512", key.secret, salt, ROUNDS, len(key.secret))

    def holds(self, number: int, page: bytes) -> bool:
        salt = 0 if number > 1 else SALT_BYTES
        made = hmac.digest(self._key, page[salt : SEAL.start] + number.to_bytes(4, "little"), "sha512")
        return hmac.compare_digest(made, page[SEAL])
