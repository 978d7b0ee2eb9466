"""The key by which this installation is known: Ed25519, made once, its private half kept as the session is.

Decisions
    One key a profile, not one a data directory. A profile is one account on one installation, and a key speaks for
    exactly that: two accounts on one machine cannot be told to be one machine by comparing their lists of devices, and
    no peer of one account ever meets a key that the other account trusts.
    A copied home brings the key along. The copy becomes a new replica (`sync.cloud.replication.sync_round`) and then
    makes a key of
    its own, which replaces the old one in the account's list; the server does not take a key under a second device id.
    `cryptography` is imported at the first use, in a thread: registering needs it, answering does not.
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

KEY_SERVICE: Final = "xiaobai-memory device key"  # the name of its entry in the keychain
ALGORITHM_PREFIX: Final = "ed25519:"  # before the base64 of the raw 32 bytes, in both halves
KEY_BYTES: Final = 32
PROOF_CONTEXT: Final = b"xiaobai-memory device proof 1"  # what the proof is derived from, beside the private half
KEY_LOCK_TIMEOUT: Final = 10.0  # seconds for another process that makes the key at the same moment


class DeviceKey:
    """The key of one profile. `lock` is a file that only this user can make. Errors: StorageError."""

    def __init__(self, secrets: Callable[[], SecretStore], *, lock: Path) -> None:
        self._secrets = secrets
        self._lock = lock

    async def public_key(self) -> str:
        """The public half, `ed25519:` and base64. Made now where there is none, or none that can be read."""
        return await asyncio.to_thread(lambda: _public_key(self._load_or_create(rotate=False)))

    async def rotate(self) -> str:
        """The public half of a new key; the old one is gone."""
        return await asyncio.to_thread(lambda: _public_key(self._load_or_create(rotate=True)))

    async def proof(self) -> str:
        """The secret that proves to the server who holds this key: 64 hexadecimal digits, the same for one key."""
        return _derive_proof(await asyncio.to_thread(self._load_or_create, rotate=False))

    async def sign(self, data: bytes) -> str:
        """The signature of these bytes by the private half, in base64."""
        return await asyncio.to_thread(lambda: _sign(self._load_or_create(rotate=False), data))

    def _load_or_create(self, *, rotate: bool) -> bytes:
        secrets = self._secrets()
        seed = None if rotate else _decode_key(secrets.load())
        if seed is not None:
            return seed
        busy = partial(StorageBusy, "another process has been making the device's key for too long")
        with ProcessLock(self._lock, timeout=KEY_LOCK_TIMEOUT, timeout_error=busy).hold_blocking():
            seed = None if rotate else _decode_key(secrets.load())  # another process may have made it meanwhile
            if seed is None:
                seed = _generate_seed()
                secrets.save(_encode_key(seed))
        return seed


def load_proof(secrets: SecretStore) -> str | None:
    """The proof of the key that is kept there; None if there is none. Raises StorageError."""
    seed = _decode_key(secrets.load())
    return None if seed is None else _derive_proof(seed)


def _derive_proof(seed: bytes) -> str:
    return hmac.digest(seed, PROOF_CONTEXT, hashlib.sha256).hex()


def verify_signature(public_key: str, signature: str, data: bytes) -> bool:
    """Whether the holder of this public key (`ed25519:` and base64) signed these bytes."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - 30 ms, see above
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    raw = _decode_key(public_key.encode("utf-8", "replace"))
    if raw is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(signature, validate=True), data)
    except (InvalidSignature, ValueError):  # binascii's is one as well
        return False
    return True


def _sign(seed: bytes, data: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - 30 ms, see above

    return base64.b64encode(Ed25519PrivateKey.from_private_bytes(seed).sign(data)).decode()


def _generate_seed() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - 30 ms, see above

    return Ed25519PrivateKey.generate().private_bytes_raw()


def _public_key(seed: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - 30 ms, see above

    return _encode_key(Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()).decode()


def _encode_key(raw: bytes) -> bytes:
    return ALGORITHM_PREFIX.encode() + base64.b64encode(raw)


def _decode_key(encoded: bytes | None) -> bytes | None:
    """The 32 bytes of a half as it is written; None where there is none or it is damaged."""
    if encoded is None or not encoded.startswith(ALGORITHM_PREFIX.encode()):
        return None
    try:
        raw = base64.b64decode(encoded[len(ALGORITHM_PREFIX) :].strip(), validate=True)
    except binascii.Error:
        return None
    return raw if len(raw) == KEY_BYTES else None
