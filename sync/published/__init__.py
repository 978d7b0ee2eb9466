"""The published types of results: what every door answers, and what typed clients are generated from.

camelCase, as it stands on the wire. A name here is a contract: add freely; changing one raises `CONTRACT_VERSION`.
"""

from typing import Any, Literal, NotRequired, TypedDict


class DigestLineJson(TypedDict):
    """`origin`: who said it, as far as the device it comes from tells; `peer` where it does not."""

    date: str
    text: str
    origin: Literal["user-typed", "model-written", "imported", "tool", "peer"]


class DeviceJson(TypedDict):
    deviceId: str
    name: str
    entries: list[DigestLineJson]


class KnownDeviceJson(TypedDict):
    """A device of the account. What only the server knows is null where it was never asked."""

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
    """`source`: local where the server was not asked or did not answer; `asOf`: when it last did.

    `logins`: what became of the logins of a device that was just revoked; unknown when the server knows none of it,
    open when the project does not let them be ended.
    """

    source: Literal["cloud", "local"]
    asOf: str | None
    devices: list[KnownDeviceJson]
    logins: Literal["ended", "unknown", "open"] | None


class OmissionJson(TypedDict):
    section: str
    count: int


class LoadJson(TypedDict):
    content: str
    document: str
    documentSha256: str
    digest: str
    source: Literal["cloud", "local", "template"]
    stale: bool
    pending: int
    throughSeq: int
    updatedAt: str | None
    devices: list[DeviceJson]
    omitted: list[OmissionJson]


class UpdateJson(TypedDict):
    eventId: str | None
    recorded: bool
    pending: int
    reason: NotRequired[str]


class PromptJson(TypedDict):
    prompt: str


class OperationJson(TypedDict):
    """What an edit did to one entry; the text stands in the document."""

    type: Literal["entry_added", "entry_edited", "entry_removed"]
    entryId: str
    section: list[str]


class EditedJson(TypedDict):
    operations: list[OperationJson]
    sha256: str


class VersionJson(TypedDict):
    """`cause`: hand, log, merged, app_cache, cloud, saved, restored. `label` is the footer's 最后更新."""

    sha256: str
    label: str | None
    cause: str
    createdAt: str
    entries: int


class HistoryJson(TypedDict):
    versions: list[VersionJson]


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


class ServerInfoJson(TypedDict):
    name: str
    version: str


class InitializeJson(TypedDict):
    protocolVersion: int
    serverInfo: ServerInfoJson
    capabilities: list[str]
    deviceId: str
    account: AccountJson


class FailureJson(TypedDict):
    kind: str
    message: str
    hint: str
    retryable: bool


class CloudJson(TypedDict):
    state: Literal["off", "signed_out", "connecting", "synced", "offline", "refused"]
    realtime: Literal["off", "connecting", "joined"]
    lastSyncAt: str | None
    lastError: FailureJson | None
    head: int
    cursor: int


class ThisDeviceJson(TypedDict):
    deviceId: str
    name: str
    replicaId: str


class DocumentJson(TypedDict):
    path: str
    sha256: str
    warnings: list[str]


class LanJson(TypedDict):
    peers: list[str]


class WatchersJson(TypedDict):
    file: bool


class StatusJson(TypedDict):
    account: AccountJson
    device: ThisDeviceJson
    cloud: CloudJson
    pending: int
    quarantined: int
    document: DocumentJson
    lan: LanJson
    watchers: WatchersJson
    sidecar: bool
    version: str


class RoundJson(TypedDict):
    pushed: int
    pulled: int
    quarantined: int


class ProgressValueJson(TypedDict):
    """`done` of `total` events; both can start anew where the server was restored."""

    kind: Literal["begin", "report", "end"]
    title: Literal["sync"]
    done: int
    total: int


class ProgressJson(TypedDict):
    token: str
    value: ProgressValueJson


class EventsJson(TypedDict):
    events: list[dict[str, Any]]
    nextOffset: int


class AppendedJson(EventsJson):
    """`events/appended`. `after`: where these events begin; one that differs from the last `nextOffset` tells a gap."""

    after: int


class RecordedJson(TypedDict):
    """`eventIds` in the order given; `duplicates` are the ids that were known before.

    `notSaved`: how many events were not recorded, because a person asked not to save their conversation.

    `unknownTypes`: types among them that this program does not know. Such events are kept value for value and can be
    read and searched; nothing else is done with them.
    `withoutText`: messages of which only role and length are kept, because `privacy.store_messages` is false.
    """

    eventIds: list[str]
    duplicates: list[str]
    events: list[dict[str, Any]]
    nextOffset: int
    notSaved: NotRequired[int]
    unknownTypes: NotRequired[list[str]]
    withoutText: NotRequired[list[str]]


class ForgottenJson(TypedDict):
    """Which of the events were there to be forgotten."""

    forgotten: list[str]


class RefusalJson(TypedDict):
    eventId: str
    code: str
    message: str
    noticedAt: str


class QuarantineJson(TypedDict):
    """`events`: what is in quarantine now; `released`: what this call has taken out."""

    events: list[RefusalJson]
    released: list[str]


class WatermarkJson(TypedDict):
    """`eventId`: the event at that position; null where there is none, as before the first."""

    name: str
    position: int
    eventId: str | None


class ProblemJson(TypedDict):
    what: str
    count: int
    examples: list[str]


class VerifyJson(TypedDict):
    ok: bool
    events: int
    problems: list[ProblemJson]


class CheckJson(TypedDict):
    """One thing looked at. `ok` is null where there is nothing to judge; `hint` says what to do."""

    name: str
    ok: bool | None
    found: str
    hint: str


class HealthJson(TypedDict):
    """`ok` is false where any check is."""

    ok: bool
    checks: list[CheckJson]
