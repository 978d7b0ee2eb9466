"""The Ed25519 key of this installation, one per profile. Its private half is stored like the session.

One key per profile, so that two accounts on one machine cannot be linked by their lists of devices. A copied home
contains the key; the copy becomes a new replica (`replication/sync_round.py`) and makes a key of its own.
`cryptography` takes 30 ms, so it is imported at the first use, in a thread.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from sync.errors import StorageBusy
from sync.system.process_lock import ProcessLock
from sync.system.secret_store import SecretStore

KEY_SERVICE: Final = "xiaobai-memory device key"  # of its keychain entry
ALGORITHM_PREFIX: Final = "ed25519:"  # before the base64 of the 32 bytes of either half
KEY_BYTES: Final = 32
DISCOVERY_CONTEXT: Final = b"xiaobai-memory lan discovery 1"
PROOF_CONTEXT: Final = b"xiaobai-memory device proof 1"  # the proof is an HMAC of this text with the private half
KEY_LOCK_TIMEOUT: Final = 10.0  # seconds
RECENT_SECONDS: Final = 60.0


class DeviceKey:
    """The key of one profile. `lock` is a file in a private folder. Errors: StorageError."""

    def __init__(self, secrets: Callable[[], SecretStore], *, lock: Path) -> None:
        self._secrets = secrets
        self._lock = lock
        self._recent: tuple[str, float] | None = None  # the public half, and when it was read
        self._rotations = 0

    async def public_key(self) -> str:
        """The public half, `ed25519:` and base64. Creates the key if there is none that can be read."""
        return await asyncio.to_thread(lambda: _public_key(self._load_or_create(rotate=False)))

    async def recent_public_key(self) -> str:
        """The public half as of the last minute: a keychain is slow, and each connection of a stranger needs it."""
        now = asyncio.get_running_loop().time()
        if self._recent is not None and now - self._recent[1] <= RECENT_SECONDS:
            return self._recent[0]
        rotations = self._rotations
        key = await self.public_key()
        if rotations == self._rotations:  # else it may be the former key
            self._recent = (key, now)
        return key

    async def rotate(self) -> str:
        """Replace the key. Return the new public half."""
        try:
            return await asyncio.to_thread(lambda: _public_key(self._load_or_create(rotate=True)))
        finally:
            self._rotations += 1
            self._recent = None

    async def proof(self) -> str:
        """The secret that proves possession of the key to the server: 64 hexadecimal digits, derived from the key."""
        return _derive_proof(await asyncio.to_thread(self._load_or_create, rotate=False))

    async def private_half(self) -> bytes:
        """The 32 bytes of the private half, for TLS with other devices. Never store or log them."""
        return await asyncio.to_thread(self._load_or_create, rotate=False)

    async def discovery_id(self) -> str:
        """A secret derived from the key that paired devices know: a guest's announcements are recognised by it."""
        seed = await asyncio.to_thread(self._load_or_create, rotate=False)
        return hmac.digest(seed, DISCOVERY_CONTEXT, hashlib.sha256).hex()

    async def sign(self, data: bytes) -> str:
        """Sign bytes; the signature in base64."""
        return await asyncio.to_thread(lambda: _sign(self._load_or_create(rotate=False), data))

    def _load_or_create(self, *, rotate: bool) -> bytes:
        secrets = self._secrets()
        seed = None if rotate else _decode_key(secrets.load())
        if seed is not None:
            return seed
        busy = partial(StorageBusy, "another process has been making the device's key for too long")
        with ProcessLock(self._lock, timeout=KEY_LOCK_TIMEOUT, timeout_error=busy).hold_blocking():
            seed = None if rotate else _decode_key(secrets.load())  # another process may have made it
            if seed is None:
                seed = _generate_seed()
                secrets.save(_encode_key(seed))
        return seed


def load_proof(secrets: SecretStore) -> str | None:
    """The proof of the stored key; None if there is none. Raises StorageError."""
    seed = _decode_key(secrets.load())
    return None if seed is None else _derive_proof(seed)


def _derive_proof(seed: bytes) -> str:
    return hmac.digest(seed, PROOF_CONTEXT, hashlib.sha256).hex()


def verify_signature(public_key: str, signature: str, data: bytes) -> bool:
    """Whether `signature` signs these bytes with this public key (`ed25519:` and base64)."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - 30 ms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    raw = _decode_key(public_key.encode("utf-8", "replace"))
    if raw is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(signature, validate=True), data)
    except (InvalidSignature, ValueError):  # binascii.Error is a ValueError
        return False
    return True


def _sign(seed: bytes, data: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - 30 ms

    return base64.b64encode(Ed25519PrivateKey.from_private_bytes(seed).sign(data)).decode()


def _generate_seed() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - 30 ms

    return Ed25519PrivateKey.generate().private_bytes_raw()


def _public_key(seed: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - 30 ms

    return _encode_key(Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()).decode()


def _encode_key(raw: bytes) -> bytes:
    return ALGORITHM_PREFIX.encode() + base64.b64encode(raw)


def _decode_key(encoded: bytes | None) -> bytes | None:
    """The 32 bytes of a stored half; None if it is missing or damaged."""
    if encoded is None or not encoded.startswith(ALGORITHM_PREFIX.encode()):
        return None
    try:
        raw = base64.b64decode(encoded[len(ALGORITHM_PREFIX) :].strip(), validate=True)
    except binascii.Error:
        return None
    return raw if len(raw) == KEY_BYTES else None
