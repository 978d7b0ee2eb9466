"""Which devices this one talks to: those of the account as of the last sync, without the revoked ones. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class RefusalCause(StrEnum):
    """Why a connection was refused or ended. The words are part of the protocol and of `lan/status`."""

    STRANGER = "stranger"  # no device of this account, or one that did not show a certificate
    REVOKED = "revoked"
    COPY = "copy_of_this_device"  # it has this device's own key: a copied data directory
    FORKED = "copied_database"  # it has other events under numbers that are in use here
    TLS = "tls_failed"  # an older TLS version, or no TLS
    SLOW = "too_slow"  # a deadline passed
    PROTOCOL = "protocol_error"
    VERSION = "other_version"
    STORAGE = "storage_failed"
    FULL = "too_many_connections"
    DAILY_LIMIT = "daily_limit"  # it has brought what a device may in a day; the connection stays
    DUPLICATE = "already_connected"
    WRONG_CODE = "wrong_code"  # of a pairing
    OTHER_ACCOUNT = "other_account"
    UNPAIRED = "pairing_ended"
    REFUSED_THERE = "refused_by_the_other_device"


@dataclass(frozen=True, slots=True)
class TrustList:
    """Public keys, each with its device id. `own_key` is this device's."""

    own_key: str
    trusted: Mapping[str, str] = field(default_factory=dict)
    revoked: Mapping[str, str] = field(default_factory=dict)

    @property
    def known_keys(self) -> frozenset[str]:
        """The keys whose certificates pass the TLS handshake, so that a refusal afterwards can name its cause."""
        return frozenset((self.own_key, *self.trusted, *self.revoked))

    def device_of(self, public_key: str) -> str:
        """The device with this key; empty if it is unknown."""
        return self.trusted.get(public_key) or self.revoked.get(public_key) or ""

    def refusal_of(self, public_key: str | None) -> RefusalCause | None:
        """Why a peer with this key is refused; None for one that may connect."""
        if public_key is None:
            return RefusalCause.STRANGER
        if public_key == self.own_key:
            return RefusalCause.COPY
        if public_key in self.revoked:
            return RefusalCause.REVOKED
        return None if public_key in self.trusted else RefusalCause.STRANGER


def trust_list(own_key: str, keys: Mapping[str, str], revoked_devices: Mapping[str, str | None]) -> TrustList:
    """The trust list of known keys (key → device) and revoked devices (device → its key, if known)."""
    others = {key: device for key, device in keys.items() if key != own_key}
    revoked = {key: device for key, device in others.items() if device in revoked_devices}
    revoked |= {key: device for device, key in revoked_devices.items() if key is not None and key != own_key}
    trusted = {key: device for key, device in others.items() if key not in revoked}
    return TrustList(own_key, trusted, revoked)
