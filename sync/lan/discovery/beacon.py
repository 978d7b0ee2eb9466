"""What a device announces on the network, and which announcements of others it tries. Pure.

An announcement names neither account nor device: a random name, new at each start, and a mark of account and day.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from sync.runtime.backoff import Backoff

SERVICE_TYPE: Final = "_xiaobai-mem._tcp.local."
VERSION: Final = "1"
MARK_BYTES: Final = 8
NAME_BYTES: Final = 8
_INSTANCE_NAME: Final = re.compile(rf"[0-9a-f]{{{2 * NAME_BYTES}}}")
MARK_CONTEXT: Final = b"xiaobai-memory lan 1 "
MAX_CANDIDATES: Final = 32  # devices of one account that are tried; of more, those that failed most are forgotten
MAX_ADDRESSES: Final = 4  # of one device
RETRY_BACKOFF: Final = Backoff(base=2.0, limit=60.0)
POLITE_SECONDS: Final = 2.0  # the device with the greater name waits, so that two do not call each other at once


def account_mark(account_id: str, moment: datetime) -> str:
    """The mark of an account on the day (UTC) of `moment`. Only who knows the account's id can compute it."""
    key = hashlib.sha256(MARK_CONTEXT + account_id.encode()).digest()
    day = moment.astimezone(UTC).date().isoformat()
    return base64.urlsafe_b64encode(hmac.digest(key, day.encode(), "sha256")[:MARK_BYTES]).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class DiscoveryIds:
    """What marks are made of: the account's id, or a secret of a paired guest. `own` is empty for a guest alone."""

    own: str = ""
    known: frozenset[str] = frozenset()  # of the devices that are tried; includes the own one


def is_instance_name(name: str, service_type: str) -> bool:
    """Whether a device of this program announces itself by such a name. Anyone can announce any other."""
    return _INSTANCE_NAME.fullmatch(name.removesuffix(f".{service_type}")) is not None


def announcement(own_id: str, moment: datetime, *, shows_code: bool = False) -> dict[str, str]:
    """The text record of this device; `p`: it shows the code of a pairing."""
    mark = {"h": account_mark(own_id, moment)} if own_id else {}
    return {"v": VERSION, **mark, **({"p": "1"} if shows_code else {})}


def shows_code(properties: Mapping[bytes, bytes | None]) -> bool:
    """Whether a text record says that its device shows the code of a pairing."""
    return properties.get(b"v") == VERSION.encode() and properties.get(b"p") == b"1"


def is_known(properties: Mapping[bytes, bytes | None], known: Iterable[str], moment: datetime) -> bool:
    """Whether a text record has the mark of one of these ids, of a day that a wrong clock or another zone may have."""
    mark = properties.get(b"h")
    if mark is None or properties.get(b"v") != VERSION.encode():
        return False
    days = [moment + timedelta(days=offset) for offset in (-1, 0, 1)]
    return any(hmac.compare_digest(mark, account_mark(one, day).encode()) for one in known for day in days)


def addresses_to_try(addresses: Iterable[str], heard_at: str) -> tuple[str, ...]:
    """The announced addresses that may belong to a device on the network of the address at which it was heard.

    Whoever repeats a mark could send this device anywhere else: to another network, or to its own ports.
    """
    own = ip_address(heard_at)

    def may_be_there(text: str) -> bool:
        address = ip_address(text)
        same_kind = (address.is_global, address.is_loopback) == (own.is_global, own.is_loopback)
        return same_kind and not address.is_multicast and not address.is_unspecified

    return tuple(filter(may_be_there, addresses))[:MAX_ADDRESSES]


@dataclass(frozen=True, slots=True)
class AnnouncedDevice:
    """An announced device of the account. Times are monotonic seconds."""

    name: str
    addresses: tuple[str, ...]
    port: int
    next_try: float
    failures: int = 0


class AnnouncedDevices:
    """The announced devices, and when each is tried next."""

    def __init__(self, own_name: str) -> None:
        self._own_name = own_name
        self._candidates: dict[str, AnnouncedDevice] = {}
        self._dialing: set[str] = set()

    def __len__(self) -> int:
        return len(self._candidates)

    def add(self, name: str, addresses: tuple[str, ...], port: int, now: float) -> None:
        """Note an announcement; the own one is ignored.

        A device with several addresses announces each by itself: those that were heard before are tried afterwards.
        A further address is tried soon. Only another port, as after a restart, begins a new series of failures.
        """
        if name == self._own_name or not addresses or not port:
            return
        known = self._candidates.pop(name, None)
        if known is not None and known.port != port:
            known = None
        before, failures = (known.addresses, known.failures) if known is not None else ((), 0)
        addresses = tuple(dict.fromkeys((*addresses, *before)))[:MAX_ADDRESSES]
        if known is not None and set(known.addresses) == set(addresses):
            self._candidates[name] = replace(known, addresses=addresses)
            return
        wait = 0.0 if self._own_name < name else POLITE_SECONDS
        self._candidates[name] = AnnouncedDevice(name, addresses, port, now + wait, failures)
        if len(self._candidates) > MAX_CANDIDATES:
            worst = max(self._candidates.values(), key=lambda candidate: candidate.failures)  # the oldest of them
            del self._candidates[worst.name]

    def remove(self, name: str) -> None:
        self._candidates.pop(name, None)

    def clear(self) -> None:
        self._candidates.clear()

    def take_due(self, now: float) -> list[AnnouncedDevice]:
        """Those to try now, which `note_result` gives back."""
        due = [candidate for candidate in self._candidates_to_dial() if candidate.next_try <= now]
        self._dialing.update(candidate.name for candidate in due)
        return due

    def seconds_to_next(self, now: float) -> float | None:
        """How long until the next try; None without a candidate that waits."""
        return min((max(0.0, candidate.next_try - now) for candidate in self._candidates_to_dial()), default=None)

    def note_result(self, name: str, now: float, *, connected: bool) -> None:
        """Note how a try ended; one that is connected is looked at again after the longest wait."""
        self._dialing.discard(name)
        if (candidate := self._candidates.get(name)) is None:
            return
        failures = 0 if connected else candidate.failures + 1
        wait = RETRY_BACKOFF.limit if connected else RETRY_BACKOFF.seconds(failures)
        self._candidates[name] = replace(candidate, failures=failures, next_try=now + wait)

    def try_all_again(self, now: float) -> None:
        """Try each at once: a connection ended, or the addresses of this machine have changed."""
        for name, candidate in self._candidates.items():
            self._candidates[name] = replace(candidate, next_try=min(candidate.next_try, now + POLITE_SECONDS))

    def _candidates_to_dial(self) -> list[AnnouncedDevice]:
        return [candidate for candidate in self._candidates.values() if candidate.name not in self._dialing]
