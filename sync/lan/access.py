"""The local network for the application: off, alone, listening or failed. TLS is imported when it is needed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal

from sync.errors import DeviceUnknown, LanOff
from sync.lan.model import (
    LanPairedDevicesJson,
    LanPairedJson,
    LanPairingJson,
    LanPeerJson,
    LanRefusalJson,
    LanStatusJson,
)
from sync.lan.pairing.port import Pairings
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change
from sync.settings.sections import LanSettings

if TYPE_CHECKING:
    from sync.lan.service import LanService
    from sync.lan.transport.trust import RefusalCause

START_DELAY: Final = 0.5  # seconds after a start in which nothing of it is loaded
RETRY_SECONDS: Final = 30.0  # after the port could not be opened
START_TIMEOUT: Final = 10.0  # seconds that a person waits for the port

HINTS: Final = {
    "stranger": "It is not paired and no device of this account, or this device has not synced since.",
    "revoked": "One of the two devices was revoked; it stays refused.",
    "copy_of_this_device": "It has a copy of this device's data directory: start it once with the cloud, or revoke it.",
    "copied_database": "One of the two databases was copied or restored from a backup: sync both with the cloud once. "
    "Without an account they stay refused.",
    "tls_failed": "It speaks no TLS 1.3; another program may have tried this port.",
    "too_slow": "One of the two did not answer in time; a device that slept did not.",
    "protocol_error": "One of the two sent something else than this program does.",
    "other_version": "Update xiaobai-memory on the older of the two devices.",
    "storage_failed": "The disk of one of the two is full, or its database is busy: `xiaobai-memory doctor` there.",
    "daily_limit": "It has sent what this device takes from one in a day; the rest comes tomorrow (UTC).",
    "too_many_connections": "Some machine opens many connections to this port.",
    "wrong_code": "Some device entered a wrong pairing code; five of them end it.",
    "other_account": "The two memories belong to different accounts: log in to one account on both.",
    "pairing_ended": "The pairing was ended on one of the two devices: pair them again (`xiaobai-memory lan pair`).",
    "refused_by_the_other_device": "`xiaobai-memory lan status` on the other device says why.",
}

State = Literal["off", "alone", "listening", "failed"]


class LanAccess:
    """Starts the service when the account has a second device, or a person asks.

    `count_others` reads how many other devices there are; it may differ after one of `devices_changed` has moved.
    `pairing_changed` counts what happens to the code that is shown here.
    """

    def __init__(
        self,
        settings: LanSettings,
        build: "Callable[[], LanService]",
        count_others: Callable[[], Awaitable[int]],
        pairings: Pairings,
        devices_changed: Sequence[ChangeCounter],
        *,
        is_sidecar: bool,
    ) -> None:
        self._settings = settings
        self._build = build
        self._count_others = count_others
        self._pairings = pairings
        self._devices_changed = devices_changed
        self._may_run = is_sidecar and settings.enabled != "off"
        self._is_running = False
        self._service: LanService | None = None
        self._start_requests = ChangeCounter()
        self._start_attempts = ChangeCounter()  # the port was opened, or could not be
        self.pairing_changed = ChangeCounter()

    def peer_ids(self) -> list[str]:
        """The devices that are connected now."""
        return [peer.device_id for peer in self.peers()]

    def peers(self) -> tuple[LanPeerJson, ...]:
        return () if self._service is None else self._service.peers()

    async def status(self) -> LanStatusJson:
        service = self._service
        address, port = (service and service.listening_at) or (None, None)
        return LanStatusJson(
            enabled=self._settings.enabled,
            state=self._state(),
            address=address,
            port=port,
            problem=None if service is None else service.problem,
            trusted=await self._count_others(),
            found=0 if service is None else service.candidate_count(),
            interfaces=() if service is None else service.interfaces(),
            peers=self.peers(),
            refusals=() if service is None else tuple(
                LanRefusalJson(one.cause, one.address, one.device_id, one.count, one.last_at, _hint(one.cause))
                for one in service.refusals.newest_first()
            ),
            paired=(await self.paired_devices()).paired,
            pairing=self.pairing_state(),
        )  # fmt: skip

    async def probe_multicast(self) -> None:
        """Try, in at most two seconds an address, whether multicast works; `status` names those at which it fails."""
        if self._service is not None:
            await self._service.probe_multicast()

    def pairing_state(self) -> LanPairingJson | None:
        """The pairing code that is shown here, or what became of the last one."""
        return None if self._service is None else self._service.pairing_state()

    async def paired_devices(self) -> LanPairedDevicesJson:
        """The devices that were paired with this one by code."""
        connected = set(self.peer_ids())
        rows = await self._pairings.read()
        return LanPairedDevicesJson(
            tuple(LanPairedJson(row.device_id, row.name, row.paired_at, row.device_id in connected) for row in rows)
        )

    async def connect(self, host: str, port: int) -> LanPeerJson:
        """Connect to a device of the account. LanOff, PeerUnreachable, PeerRefused."""
        return await (await self._started()).connect(host, port)

    async def show_code(self) -> LanPairingJson:
        """Show a new pairing code. LanOff."""
        return await (await self._started()).show_code()

    async def enter_code(self, text: str, host: str | None, port: int | None) -> LanPairingJson:
        """Pair with the device that shows a code. InvalidInput, LanOff, PeerUnreachable, PeerRefused."""
        from sync.lan.pairing.code import Invitation, parse_invitation  # noqa: PLC0415 - at its first use

        invitation = parse_invitation(text)
        if host is not None and port is not None:
            invitation = Invitation(invitation.code, ((host, port),))
        return await (await self._started()).enter_code(invitation)

    def cancel_pairing(self) -> None:
        """The code that is shown here is no longer good; what it has paired stays paired."""
        if self._service is not None:
            self._service.cancel_pairing()

    async def forget(self, device_id: str) -> LanPairedDevicesJson:
        """End a pairing, and the connection, at once. Raises DeviceUnknown."""
        if not await self._pairings.forget(device_id):
            raise DeviceUnknown("no device of this id is paired with this one")
        if self._service is not None:
            await self._service.end_untrusted()
        return await self.paired_devices()

    async def _started(self) -> "LanService":
        """The service, started now if it was not. Raises LanOff."""
        if not self._may_run and not self._is_running:
            raise LanOff("this device takes no part in the local network")
        if self._service is None or self._service.listening_at is None:
            attempts = self._start_attempts.count
            self._start_requests.increment()
            await wait_for_any_change(START_TIMEOUT, (self._start_attempts, attempts))
        if self._service is None:
            raise LanOff("the local network has not started yet")
        return self._service

    async def run(self) -> None:
        """Listen until cancelled, from the moment that there is a second device."""
        self._is_running = True
        await asyncio.sleep(START_DELAY)
        requests = 0
        seen = [(counter, counter.count) for counter in self._devices_changed]
        while (
            self._settings.enabled == "auto"
            and self._start_requests.count == requests
            and not await self._count_others()
        ):
            await wait_for_any_change(None, *seen, (self._start_requests, requests))
            seen = [(counter, counter.count) for counter in self._devices_changed]
        if self._service is None:
            self._service = await asyncio.to_thread(self._build)
            self._service.pairing_changed = self.pairing_changed
        while True:
            requests = self._start_requests.count
            try:
                await self._service.run(self._start_attempts.increment)
            except OSError:  # the port is taken, or the address is none of this machine's; `status` says so
                self._start_attempts.increment()
                await wait_for_any_change(RETRY_SECONDS, (self._start_requests, requests))

    def _state(self) -> State:
        if not self._is_running:
            return "off"
        if self._service is None:
            return "alone"
        if self._service.problem is not None:
            return "failed"
        return "listening" if self._service.listening_at is not None else "alone"


def _hint(cause: "RefusalCause") -> str:
    return HINTS.get(cause.value, "")
