"""The Ed25519 key of this installation, one per profile. Its private half is stored like the session.

One key per profile, so that two accounts on one machine cannot be linked by their lists of devices. A copied home
contains the key; the copy becomes a new replica (`replication/sync_round.py`) and makes a key of its own.
`cryptography` takes 30 ms, so it is imported at the first use, in a thread.
"""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from sync.errors import StorageBusy
from sync.log.devices.signing import ALGORITHM_PREFIX, decode_key
from sync.system.process_lock import ProcessLock
from sync.system.secret_store import SecretStore

KEY_SERVICE: Final = "xiaobai-memory device key"  # of its keychain entry
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
        _, (signature,) = await self.sign_all([data])
        return signature

    async def sign_all(self, texts: Sequence[bytes]) -> tuple[str, list[str]]:
        """Sign many texts with one reading of the key; the public half, and the signatures in base64."""
        return await asyncio.to_thread(lambda: _sign_all(self._load_or_create(rotate=False), texts))

    def _load_or_create(self, *, rotate: bool) -> bytes:
        secrets = self._secrets()
        seed = None if rotate else decode_key(secrets.load())
        if seed is not None:
            return seed
        busy = partial(StorageBusy, "another process has been making the device's key for too long")
        with ProcessLock(self._lock, timeout=KEY_LOCK_TIMEOUT, timeout_error=busy).hold_blocking():
            seed = None if rotate else decode_key(secrets.load())  # another process may have made it
            if seed is None:
                seed = _generate_seed()
                secrets.save(_encode_key(seed))
        return seed


def load_proof(secrets: SecretStore) -> str | None:
    """The proof of the stored key; None if there is none. Raises StorageError."""
    seed = decode_key(secrets.load())
    return None if seed is None else _derive_proof(seed)


def _derive_proof(seed: bytes) -> str:
    return hmac.digest(seed, PROOF_CONTEXT, hashlib.sha256).hex()


def _sign_all(seed: bytes, texts: Sequence[bytes]) -> tuple[str, list[str]]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - 30 ms

    key = Ed25519PrivateKey.from_private_bytes(seed)
    return _public_key(seed), [base64.b64encode(key.sign(text)).decode() for text in texts]


def _generate_seed() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - 30 ms

    return Ed25519PrivateKey.generate().private_bytes_raw()


def _public_key(seed: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - 30 ms

    return _encode_key(Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()).decode()


def _encode_key(raw: bytes) -> bytes:
    return ALGORITHM_PREFIX.encode() + base64.b64encode(raw)
