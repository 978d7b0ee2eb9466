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

from sync.encryption.key import SALT_BYTES, DatabaseKey
from sync.system.files import translate_os_errors

PAGE_BYTES: Final = 4096
SAMPLED_PAGES: Final = 64  # by which a database without mark and key is judged
MIN_CIPHER_VALUES: Final = 250  # different bytes in a page of ciphertext; all 256 are expected
IV_SLICE: Final = slice(PAGE_BYTES - 80, PAGE_BYTES - 64)
HMAC_SLICE: Final = slice(PAGE_BYTES - 64, PAGE_BYTES)
SQLITE_MAGIC: Final = b"SQLite format 3\0"  # in the place of the salt, in a plain database
SALT_MASK: Final = 0x3A
KDF_ITERATIONS: Final = 2  # of the derivation; the key is random already
FORMAT_VERSION_SLICE: Final = slice(18, 20)  # of the header: 2 for WAL, 1 without (sqlite.org/fileformat2.html, 1.3)
FORMAT_WITHOUT_WAL: Final = b"\x01\x01"

WAL_HEADER_BYTES: Final = 32
WAL_SALT_SLICE: Final = slice(16, 24)  # in the header; the second eight bytes of each frame repeat it
FRAME_HEADER_BYTES: Final = 24


def lacks_magic(database: Path) -> bool:
    """Whether a database, of a page at least, does not begin as a plain one does. Raises StorageError."""
    with translate_os_errors(database):
        if not database.is_file() or database.stat().st_size < PAGE_BYTES:
            return False
        with database.open("rb") as file:
            return file.read(len(SQLITE_MAGIC)) != SQLITE_MAGIC


def looks_encrypted(database: Path) -> bool:
    """Whether the first pages are as uniform as ciphertext; those of a damaged plain database are not all so."""
    with translate_os_errors(database), database.open("rb") as file:
        pages = [page for _ in range(SAMPLED_PAGES) if len(page := file.read(PAGE_BYTES)) == PAGE_BYTES]
    return len(pages) > 1 and all(len(set(page)) >= MIN_CIPHER_VALUES for page in pages)


def key_decrypts(key: DatabaseKey, database: Path) -> bool:
    """Whether any page of the database was encrypted with this key. Reads until one is found. Raises StorageError."""
    seal = _PageHmac(key)
    with translate_os_errors(database), database.open("rb") as file:
        number = 1
        while len(page := file.read(PAGE_BYTES)) == PAGE_BYTES:
            if seal.matches(number, page):
                return True
            number += 1
    return False


def decrypt_database(data: bytes, wal: bytes, key: DatabaseKey) -> bytes:
    """A database with what its write-ahead log had committed, as the bytes of a plain one that has no such log.

    What is damaged stays damaged: a first page whose seal is broken does not begin as a database does. A last page that
    was cut off is left out.
    """
    seal = _PageHmac(key)
    found = {
        number: data[(number - 1) * PAGE_BYTES : number * PAGE_BYTES]
        for number in range(1, len(data) // PAGE_BYTES + 1)
    }
    found |= _committed_pages(wal, seal)
    image = bytearray()
    for number in range(1, max(found, default=0) + 1):
        image += _decrypt_page(number, found[number], key) if number in found else bytes(PAGE_BYTES)
    if image:
        image[FORMAT_VERSION_SLICE] = FORMAT_WITHOUT_WAL
    if 1 in found and seal.matches(1, found[1]):
        image[: len(SQLITE_MAGIC)] = SQLITE_MAGIC
    return bytes(image)


def _committed_pages(wal: bytes, page_hmac: "_PageHmac") -> dict[int, bytes]:
    """The newest page of each number, up to the last commit before anything that is torn or from an earlier round."""
    committed: dict[int, bytes] = {}
    since: dict[int, bytes] = {}
    for number, ends, page in _wal_frames(wal):
        if not page_hmac.matches(number, page):
            break
        since[number] = page
        if ends:
            committed |= since
            since = {}
    return committed


def _wal_frames(wal: bytes) -> Iterator[tuple[int, bool, bytes]]:
    """Page number, whether a commit ends here, and the page, of each whole frame of this round."""
    for at in range(WAL_HEADER_BYTES, len(wal) - FRAME_HEADER_BYTES - PAGE_BYTES + 1, FRAME_HEADER_BYTES + PAGE_BYTES):
        header = wal[at : at + FRAME_HEADER_BYTES]
        if header[8:16] != wal[WAL_SALT_SLICE]:
            return
        page = wal[at + FRAME_HEADER_BYTES : at + FRAME_HEADER_BYTES + PAGE_BYTES]
        yield int.from_bytes(header[:4], "big"), header[4:8] != bytes(4), page


def _decrypt_page(number: int, page: bytes, key: DatabaseKey) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415 - 30 ms, in need only

    decryptor = Cipher(algorithms.AES(key.secret), modes.CBC(page[IV_SLICE])).decryptor()
    salt = 0 if number > 1 else SALT_BYTES
    return page[:salt] + decryptor.update(page[salt : IV_SLICE.start]) + page[IV_SLICE.start :]


class _PageHmac:
    """The HMAC of pages under one key."""

    def __init__(self, key: DatabaseKey) -> None:
        salt = bytes(byte ^ SALT_MASK for byte in key.salt)
        self._key = hashlib.pbkdf2_hmac("sha512", key.secret, salt, KDF_ITERATIONS, len(key.secret))

    def matches(self, number: int, page: bytes) -> bool:
        salt = 0 if number > 1 else SALT_BYTES
        made = hmac.digest(self._key, page[salt : HMAC_SLICE.start] + number.to_bytes(4, "little"), "sha512")
        return hmac.compare_digest(made, page[HMAC_SLICE])
