"""SHA-256 of files that are looked at again and again."""

import hashlib
from typing import Final

MEMOIZE_FROM_BYTES: Final = (
    64 * 1024
)  # bytes from which comparing with what was hashed last is far quicker than hashing
MEMO_SIZE: Final = 2  # what the memory file holds, and what is about to take its place

_memo: Final[list[tuple[bytes, str]]] = []


def sha256(data: bytes) -> str:
    """The digest in hex. One rendering asks six times for the same two contents."""
    if len(data) < MEMOIZE_FROM_BYTES:
        return hashlib.sha256(data).hexdigest()
    for known, digest in tuple(_memo):
        if known == data:
            return digest
    digest = hashlib.sha256(data).hexdigest()
    _memo[:] = [(data, digest), *_memo[: MEMO_SIZE - 1]]
    return digest
