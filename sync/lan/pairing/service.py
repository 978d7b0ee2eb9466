"""Pairings over TLS: show one code at a time, answer the devices that enter it, and enter another device's code."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from sync.clock import Clock, timestamp
from sync.errors import DifferentUser, PeerRefused, PeerUnreachable, SettingsError
from sync.lan.discovery.pairing_search import MAX_SHOWN, PairingSearch
from sync.lan.local_device import LocalDevice
from sync.lan.model import LanPairingJson
from sync.lan.pairing.code import Invitation, invitation_uri, new_code
from sync.lan.pairing.pairing_messages import MAX_MESSAGE_BYTES, PairRefused, decode_message, frame_of
from sync.lan.pairing.port import AccountClaim
from sync.lan.pairing.protocol import (
    LIFETIME_SECONDS,
    DeviceCard,
    EnteringSide,
    OwnDevice,
    PairedDevice,
    PairingCause,
    PairingRefused,
    ShowingSide,
    ShownCode,
)
from sync.lan.protocol.frames import MAX_TEXT, ProtocolError
from sync.lan.transport.certificates import certificate_of
from sync.lan.transport.channel import Deadlines, PeerChannel, connect_tls, connection_failure
from sync.lan.transport.refusals import Refusals
from sync.lan.transport.tls_contexts import pairing_context
from sync.lan.transport.trust import RefusalCause
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change

PAIRING_TIMEOUT: Final = 20.0  # seconds of one connection
SEARCH_SECONDS: Final = 30.0  # to find a device that shows a code; a busy wireless network drops multicast
FURTHER_SECONDS: Final = 2.0  # to find another one, after one that has refused the code

RECORDED_CAUSES: Final = {  # as refusals in `lan status`; an expired code is reported to the other device only
    PairingCause.WRONG_CODE: RefusalCause.WRONG_CODE,
    PairingCause.OTHER_ACCOUNT: RefusalCause.OTHER_ACCOUNT,
    PairingCause.SAME_DEVICE: RefusalCause.COPY,
    PairingCause.REVOKED: RefusalCause.REVOKED,
    PairingCause.VERSION: RefusalCause.VERSION,
}
HINTS: Final = {
    PairingCause.WRONG_CODE: "Compare the code on the other screen. Five wrong ones end it.",
    PairingCause.EXPIRED: "Show a new code on the other device; it is good for two minutes.",
    PairingCause.USED: "Show a new code on the other device; each is good once.",
    PairingCause.CANCELLED: "Show a new code on the other device.",
    PairingCause.TRIES: "Show a new code on the other device; this one was entered wrong too often.",
    PairingCause.OTHER_ACCOUNT: "The two memories belong to different accounts; log in to one account on both.",
    PairingCause.SAME_DEVICE: "Both devices have the same id: give one of them another XIAOBAI_DEVICE_ID.",
    PairingCause.REVOKED: "One of the two has revoked the other, for good.",
    PairingCause.LOST: "Show a new code there and try again.",
    PairingCause.VERSION: "Update xiaobai-memory on the older of the two devices.",
}


class PairingService:
    """The pairings of a device that listens. `changed` counts what happens to the shown code."""

    def __init__(
        self, device: LocalDevice, search: PairingSearch, refusals: Refusals, clock: Clock, deadlines: Deadlines
    ) -> None:
        self._device = device
        self._search = search
        self._refusals = refusals
        self._clock = clock
        self._deadlines = deadlines
        self._shown_code: ShownCode | None = None
        self._expires_at = ""
        self._outcome: LanPairingJson | None = None  # of the shown code
        self.changed = ChangeCounter()
        search.is_showing = lambda: self.is_showing

    @property
    def is_showing(self) -> bool:
        """Whether a code is shown that is still good."""
        return self._shown_code is not None and self._shown_code.refusal(self._clock.monotonic()) is None

    def state(self) -> LanPairingJson | None:
        """The shown code, without the code itself, or what became of the last one."""
        if self._shown_code is None or self._outcome is not None:
            return self._outcome
        cause = self._shown_code.refusal(self._clock.monotonic())
        if cause is not None and cause is not PairingCause.USED:  # a used code has an outcome in a moment
            return LanPairingJson("failed", cause=cause)
        return LanPairingJson("waiting", expires_at=self._expires_at, tries_left=self._shown_code.tries_left)

    def show(self, addresses: Sequence[tuple[str, int]]) -> LanPairingJson:
        """Show a new code; the one before is no longer good. `addresses`: where this device listens."""
        if self._shown_code is not None:
            self._shown_code.is_used = True  # also for a connection that has begun with it
        shown = ShownCode(new_code(self._clock.random_bytes), self._clock.monotonic())
        self._shown_code, self._outcome = shown, None
        self._expires_at = timestamp(self._clock.now() + timedelta(seconds=LIFETIME_SECONDS))
        asyncio.get_running_loop().call_later(LIFETIME_SECONDS, self._note_change)
        self._note_change()
        uri = invitation_uri(Invitation(shown.code, tuple(addresses)))
        return LanPairingJson("waiting", shown.code, uri, self._expires_at, shown.tries_left)

    def cancel(self) -> None:
        """The shown code is no longer good, also for a connection that has begun with it."""
        if self._shown_code is not None and self.is_showing:
            self._shown_code.is_used = True
            self._note_outcome(self._shown_code, LanPairingJson("failed", cause=PairingCause.CANCELLED))
            self._note_change()

    async def serve(self, channel: PeerChannel, admit: Callable[[], None]) -> None:
        """Talk to a device without certificate while a code is shown, and close the channel.

        `admit` is called once it has entered the code.
        """
        shown = self._shown_code
        assert shown is not None
        side = ShowingSide(shown, await self._own_device(), self._clock.random_bytes)
        try:
            async with asyncio.timeout(PAIRING_TIMEOUT):
                paired = await self._serve(channel, side, admit)
            self._note_outcome(shown, _paired_json(paired))
        except PairingRefused as error:
            if (cause := RECORDED_CAUSES.get(error.cause)) is not None:
                self._refusals.add(cause, channel.address[0])
            if side.has_used_code:
                self._note_outcome(shown, LanPairingJson("failed", cause=error.cause))
            if error.message is not None:
                await channel.send_frame(frame_of(error.message))
        except ProtocolError:
            self._refusals.add(RefusalCause.PROTOCOL, channel.address[0])
            channel.abort()  # a slow end would take in what else it sends
        except TimeoutError:
            self._refusals.add(RefusalCause.SLOW, channel.address[0])
        finally:
            if side.has_used_code:
                self._note_outcome(shown, LanPairingJson("failed", cause=PairingCause.LOST))
            channel.close()
            self._note_change()

    async def _serve(self, channel: PeerChannel, side: ShowingSide, admit: Callable[[], None]) -> PairedDevice:
        while True:
            message = decode_message(await self._receive(channel))
            answers, paired = side.on_message(message, self._clock.monotonic())
            if paired is not None:
                admit()
                await self._store(paired.card)
            try:
                for answer in answers:
                    await channel.send_frame(frame_of(answer))
            except (OSError, TimeoutError) as error:
                if paired is None:
                    raise
                await self._device.pairings.forget(paired.card.device_id)
                raise PairingRefused(PairingCause.LOST) from error
            if paired is not None:
                return paired

    def _note_outcome(self, shown: ShownCode, outcome: LanPairingJson) -> None:
        if shown is self._shown_code and self._outcome is None:
            self._outcome = outcome

    async def enter(self, invitation: Invitation) -> tuple[LanPairingJson, tuple[str, int]]:
        """Pair with the device that shows this code; return where it is. PeerUnreachable, PeerRefused.

        Without addresses in the invitation, the devices that announce a code are tried, at most five.
        """
        if invitation.addresses:
            return await self._try_all(invitation.code, invitation.addresses, None)
        self._search.searches += 1
        self._search.changed.increment()
        try:
            return await self._find(invitation.code)
        finally:
            self._search.searches -= 1
            self._search.changed.increment()

    async def _find(self, code: str) -> tuple[LanPairingJson, tuple[str, int]]:
        ends_at, refused, tried = self._clock.monotonic() + SEARCH_SECONDS, None, set[tuple[str, int]]()
        while (left := ends_at - self._clock.monotonic()) > 0 and len(tried) < MAX_SHOWN:
            seen = self._search.found.count
            new = [address for address in self._search.addresses if address not in tried][: MAX_SHOWN - len(tried)]
            tried.update(new)
            try:
                if new:
                    return await self._try_all(code, new, refused)
            except PeerRefused as error:
                refused = error
                ends_at = min(ends_at, self._clock.monotonic() + FURTHER_SECONDS)
            except PeerUnreachable:
                pass
            else:
                await wait_for_any_change(left, (self._search.found, seen))
        hint = "Show a code there (`xiaobai-memory lan pair`), or give the address and port that it shows."
        raise refused or PeerUnreachable("no device on this network shows a code", hint=hint)

    async def _try_all(
        self, code: str, addresses: Sequence[tuple[str, int]], refused: PeerRefused | None
    ) -> tuple[LanPairingJson, tuple[str, int]]:
        unreachable: PeerUnreachable | None = None
        for host, port in addresses:
            try:
                return await self._enter_at(host, port, code), (host, port)
            except PeerRefused as error:
                refused = error
            except PeerUnreachable as error:
                unreachable = error
        raise refused or unreachable or PeerUnreachable("no address was given")

    async def _enter_at(self, host: str, port: int, code: str) -> LanPairingJson:
        try:
            channel = await connect_tls(host, port, pairing_context(), self._deadlines)
        except (OSError, TimeoutError) as error:
            raise connection_failure(error) from error
        try:
            async with asyncio.timeout(PAIRING_TIMEOUT):
                paired = await self._enter(channel, code)
        except PairingRefused as error:
            if error.message is not None:
                await channel.send_frame(frame_of(error.message))
            self._refusals.add(RefusalCause.REFUSED_THERE, host)
            cause = error.cause
            raise PeerRefused(f"the pairing failed: {cause}", cause=cause, hint=HINTS[cause]) from error
        except (ProtocolError, OSError, EOFError, TimeoutError) as error:
            hint = "The code may have expired: show a new one there."
            raise PeerUnreachable("the device at this address shows no code now", hint=hint) from error
        finally:
            channel.close()
        return _paired_json(paired)

    async def _enter(self, channel: PeerChannel, code: str) -> PairedDevice:
        certificate = hashlib.sha256(channel.peer_certificate or b"").digest()
        side = EnteringSide(code, certificate, await self._own_device(), self._clock.random_bytes)
        messages, paired = side.start(), None
        while paired is None:
            for message in messages:
                await channel.send_frame(frame_of(message))
            messages, paired = side.on_message(decode_message(await self._receive(channel)))
        await self._store(paired.card)
        return paired

    async def _receive(self, channel: PeerChannel) -> bytes:
        return await channel.receive_body(within=self._deadlines.hello, limit=MAX_MESSAGE_BYTES)

    async def _store(self, card: DeviceCard) -> None:
        """Store a pairing, after a guest has become the other device's owner. Raises PairingRefused."""
        pairings = self._device.pairings
        try:
            await pairings.join(AccountClaim(card.account_id, card.account_label))
        except (DifferentUser, SettingsError) as error:
            cause = PairingCause.OTHER_ACCOUNT
            raise PairingRefused(cause, PairRefused(cause)) from error
        await pairings.add(card.public_key, card.device_id, card.name, card.discovery_id)

    async def _own_device(self) -> OwnDevice:
        hello, key = await self._device.hello(), self._device.key
        trust, own_id = await self._device.trust(), hello.account_id or await key.discovery_id()
        card = DeviceCard(
            trust.own_key, hello.device_id, hello.name[:MAX_TEXT], own_id, hello.account_id, hello.account_label
        )
        revoked = frozenset((*trust.revoked, *trust.revoked.values()))
        return OwnDevice(card, lambda key: hashlib.sha256(certificate_of(key)).digest(), revoked)

    def _note_change(self) -> None:
        self.changed.increment()
        self._search.changed.increment()


def _paired_json(paired: PairedDevice) -> LanPairingJson:
    return LanPairingJson("paired", device_id=paired.card.device_id, name=paired.card.name, words=paired.words)
