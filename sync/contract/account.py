"""Answers about the account and its devices, and how they become JSON."""

from typing import TYPE_CHECKING, Literal, TypedDict

from sync.cloud.auth_port import RESEND_SECONDS

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from sync.accounts.devices import DeviceList
    from sync.cloud.auth.account import AccountState
    from sync.cloud.contact import Contact


class KnownDeviceJson(TypedDict):
    """A device of the account. What only the server knows is null until it has answered once."""

    deviceId: str
    name: str | None
    platform: str | None
    appVersion: str | None
    publicKey: str | None
    lastSeenAt: str | None
    revoked: bool
    revokedAt: str | None
    hidden: bool
    thisDevice: bool


class DevicesJson(TypedDict):
    """`source`: local if the server did not answer this call; `asOf`: its last answer.

    `logins`: what became of the logins of a device that was just revoked; unknown when the server knows none of it,
    open when the project does not let them be ended.
    """

    source: Literal["cloud", "local"]
    asOf: str | None
    devices: list[KnownDeviceJson]
    logins: Literal["ended", "unknown", "open"] | None


class AccountJson(TypedDict):
    state: Literal["not_configured", "guest", "logged_out", "logged_in"]
    userId: str | None
    label: str | None


class AuthJson(TypedDict):
    account: AccountJson


class CodeSentJson(TypedDict):
    """`contact` masked, for a person to check; a second code is not sent before `resendAfterSeconds` are over."""

    contact: str
    resendAfterSeconds: int


def devices_to_json(value: "DeviceList") -> DevicesJson:
    found: list[KnownDeviceJson] = [
        {
            "deviceId": known.device_id,
            "name": known.name,
            "platform": known.platform,
            "appVersion": known.app_version,
            "publicKey": known.public_key,
            "lastSeenAt": known.last_seen_at,
            "revoked": known.revoked,
            "revokedAt": known.revoked_at,
            "hidden": known.hidden,
            "thisDevice": known.this_device,
        }
        for known in value.devices
    ]
    return {"source": value.source, "asOf": value.as_of, "devices": found, "logins": value.logins}


def account_to_json(value: "AccountState") -> AccountJson:
    return {"state": value.state, "userId": value.user_id, "label": value.label}


def code_sent_to_json(contact: "Contact") -> CodeSentJson:
    return {"contact": contact.masked, "resendAfterSeconds": int(RESEND_SECONDS)}
