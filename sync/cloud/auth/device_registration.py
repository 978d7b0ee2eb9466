"""Register a device at the server, with a proof that it is the same device as before.

docs/decisions/003-device-proof.md explains the rules.
"""

import logging
from hashlib import sha256

from msgspec.structs import replace

from sync.cloud.auth.account import Account
from sync.cloud.auth.device_key import DeviceKey
from sync.cloud.auth.token_retry import with_fresh_token
from sync.cloud.auth_port import AuthSession
from sync.cloud.port import DeviceFacts
from sync.errors import DeviceConflict, DeviceKeyInUse

log = logging.getLogger(__name__)


class DeviceRegistrar:
    """Registers device ids once per login."""

    def __init__(self, account: Account, facts: DeviceFacts, key: DeviceKey | None, *, timeout: float) -> None:
        self._account = account
        self._facts = facts
        self._key = key
        self._timeout = timeout
        self._registered: set[tuple[str, str, str]] = set()  # (user, login, device)
        self._previous_proof: str | None = None  # of the key before a rotation

    @property
    def replica_id(self) -> str:
        """The id of this database on the server."""
        return self._facts.replica_id

    def reset(self) -> None:
        """Register again at the next call."""
        self._registered.clear()

    async def become_replica(self, replica_id: str) -> None:
        """Continue as a new replica with a new key: the original has the old one."""
        self._facts = replace(self._facts, replica_id=replica_id, takeover=self._facts.replica_id)
        self._registered.clear()
        if self._key is not None:
            self._previous_proof = await self._key.proof()
            await self._key.rotate()

    async def ensure_registered(self, session: AuthSession, device_id: str, *, own: bool, is_new: bool = False) -> None:
        """Register a device id unless this login has done so. `own`: it is not a former id of this device.

        `is_new`: this database never synced. If the server knows the device's key, the former database was lost.
        """
        registration = session.user_id, session.login_id, device_id  # the server binds each login to the device
        if registration in self._registered:
            return
        facts = await self._with_key_proof(self._facts, own=own)
        try:
            await self._register(session, device_id, facts)
        except DeviceConflict as error:
            if not own:
                raise
            if self._facts.takeover is not None and self._facts.proof is not None:  # the memory was removed here before
                await self._register(session, device_id, replace(facts, proof=self._facts.proof))
            elif is_new and error.holder is not None:
                log.warning("this device lost its former database; its replica takes the place of %s", error.holder)
                await self._register(session, device_id, replace(facts, takeover=error.holder))
            else:
                raise
        except DeviceKeyInUse:
            if self._key is None:
                raise
            log.warning("another device has this installation's key, or had it; it gets a new one")
            await self._key.rotate()
            await self._register(session, device_id, await self._with_key_proof(facts, own=True))
        if own:
            self._previous_proof = None
        self._registered.add(registration)

    async def _with_key_proof(self, facts: DeviceFacts, *, own: bool) -> DeviceFacts:
        """The facts with the key's proof. A former id of this device keeps its former public key."""
        if self._key is None:
            return facts
        proof = await self._key.proof()
        current_proof = self._previous_proof or proof
        changed = replace(facts, proof=current_proof, proof_next=sha256(proof.encode()).hexdigest())
        return replace(changed, public_key=await self._key.public_key()) if own else changed

    async def _register(self, session: AuthSession, device_id: str, facts: DeviceFacts) -> None:
        await with_fresh_token(
            self._account,
            lambda good: self._account.cloud.register_device(good, device_id, facts),
            timeout=self._timeout,
            session=session,
        )
