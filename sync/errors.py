"""The one error tree. Every error says what kind it is, what a person can do, and whether waiting helps.

The function that knows the fact raises the error. It crosses a boundary through one table (`bridge.api.errors`),
which turns it into a JSON-RPC code, an exit code and a line for a person. Messages and hints hold ids, counts,
sizes and names of settings; never text of the memory, a token, a phone number or a key.
"""

from typing import ClassVar


class XiaobaiError(Exception):
    """Root of everything this program raises on purpose.

    `kind` is the stable word other programs switch on; `hint` is one sentence a person can act on;
    `retryable` says whether the same call may succeed later without anybody changing anything.
    """

    kind: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False
    default_hint: ClassVar[str] = "This is a defect; please report it together with `xiaobai-memory doctor --json`."

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint


# --- what the caller gave us -----------------------------------------------------------------------------


class InvalidInput(XiaobaiError):
    """An argument or an event that cannot be accepted as it is. `field` names it, if there is one."""

    kind = "invalid_input"
    default_hint = "Correct the named field and call again."

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.field = field


class TooLarge(InvalidInput):
    """A value above a stated bound."""

    kind = "too_large"


class SettingsError(XiaobaiError):
    """A setting that is unknown, unreadable or out of range; the message names it."""

    kind = "bad_setting"
    default_hint = "Correct the named setting in the environment or in config.toml."


class ServiceKeyRefused(SettingsError):
    """A key that bypasses row-level security was given to a program that runs on a user's machine."""

    kind = "service_key_refused"
    default_hint = "Use the project's publishable key (sb_publishable_…); a service key can read everybody's memory."


# --- this machine ------------------------------------------------------------------------------------------


class AlreadyRunning(XiaobaiError):
    """Another process holds the sidecar role for this data directory."""

    kind = "already_running"
    default_hint = "Use the running sidecar, stop it, or give this one another XIAOBAI_DATA_DIR."


class AccountChanged(XiaobaiError):
    """Another account came in while a call worked for the former one; what it had done by then stays the former's."""

    kind = "account_changed"
    default_hint = "The account changed meanwhile: log in as the former one and call again."


class StorageError(XiaobaiError):
    """The local database or a file could not be read or written."""

    kind = "storage_error"
    default_hint = "Check the disk and the permissions of the data directory; `xiaobai-memory doctor` names it."


class StorageFull(StorageError):
    """No space left: nothing was acknowledged."""

    kind = "storage_full"
    retryable = True
    default_hint = "Free some disk space; the call succeeds again by itself."


class StorageReadOnly(StorageError):
    """The database, the file or its folder cannot be written."""

    kind = "storage_read_only"
    default_hint = "Give this user write permission to the named path."


class StorageBusy(StorageError):
    """Another process held the write lock longer than we were willing to wait."""

    kind = "storage_busy"
    retryable = True
    default_hint = "Another program is writing to the memory; try again."


class StorageCorrupt(StorageError):
    """The file is not a database or its pages contradict each other."""

    kind = "storage_corrupt"
    default_hint = "Start the sidecar: it keeps the damaged file, saves what can be read, refetches the rest."


class KeyLost(StorageError):
    """The database is encrypted and its key is missing: it is intact but cannot be read."""

    kind = "key_lost"
    default_hint = (
        "Bring the key back (the entry 'xiaobai-memory database key' of the keychain, or the file database-key beside"
        " the database); nothing was touched. If it is gone for good, move the files memory.db* out of their folder:"
        " the next start makes a new database from the memory file, and after a login the cloud fills it."
    )


class SchemaTooNew(StorageError):
    """A newer version of the program has written this database; writing to it could lose what it knows."""

    kind = "schema_too_new"
    default_hint = "Update xiaobai-memory on this machine."


class RedactionFailed(XiaobaiError):
    """The text could not be checked for secrets, so it was neither stored nor sent."""

    kind = "redaction_failed"
    default_hint = "Nothing was stored. Try again; if it persists, check redaction.patterns in config.toml."


class DocumentUntouchable(XiaobaiError):
    """The memory file cannot be understood (binary, too large, unknown encoding), so it is left alone."""

    kind = "document_untouchable"
    default_hint = "Save the memory file as UTF-8 Markdown below 4 MiB; what is recorded meanwhile is kept in the log."


class DocumentChanged(XiaobaiError):
    """The file changed between our reading and our writing; the next round takes the new bytes into account."""

    kind = "document_changed"
    retryable = True
    default_hint = "An editor saved at the same moment; the write is repeated by itself."


# --- the cloud ---------------------------------------------------------------------------------------------


class CloudError(XiaobaiError):
    """Anything that went wrong between this device and the user's Supabase project."""

    kind = "cloud_error"
    default_hint = "Nothing is lost: events wait on this device until the cloud answers."


class CloudUnavailable(CloudError):
    """No answer, a timeout, a 5xx, or an answer that is not the server's: the outcome is unknown, send again."""

    kind = "cloud_unavailable"
    retryable = True

    def __init__(self, message: str, *, hint: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class CloudUnreachable(CloudUnavailable):
    """No connection could be made, so nothing was sent: no network, or no server at the address."""

    default_hint = (
        "Check the network and XIAOBAI_SUPABASE_URL; `xiaobai-memory doctor` says which it is."
        " What is recorded meanwhile is kept on this device."
    )


class RateLimited(CloudUnavailable):
    """The server asked us to wait (429); `retry_after` in seconds, if it said how long."""

    kind = "rate_limited"


class QuotaExceeded(CloudUnavailable):
    """The account has reached a limit of the day that the server's administrators set; `retry_after` is unknown."""

    kind = "quota_exceeded"
    default_hint = "Nothing is lost: it is sent when a new day begins (UTC). An administrator may raise the limit."


class CloudNotConfigured(CloudError):
    """A call that needs the cloud, without a project being set."""

    kind = "cloud_not_configured"
    default_hint = "Set XIAOBAI_SUPABASE_URL and XIAOBAI_SUPABASE_KEY (publishable key), then log in."


class LoginRequired(CloudError):
    """There is no session, or the server no longer accepts it. Capture goes on; nothing is sent."""

    kind = "login_required"
    default_hint = "Log in again: `xiaobai-memory login`."


class BadCredentials(CloudError):
    """The password is wrong, or there is no such account."""

    kind = "bad_credentials"
    default_hint = "Check the phone number or e-mail address, and the password."


class CodeRefused(BadCredentials):
    """The code is wrong, too old or already used; the server does not say which of these."""

    kind = "code_refused"
    default_hint = (
        "Type the code of the newest message; it is good for a short time, and once. Or ask for another code."
    )


class LoginRefused(CloudError):
    """The project does not let this person in, or not in this way: blocked, sign-ups closed, a method turned off."""

    kind = "login_refused"
    default_hint = "Ask whoever runs the Supabase project."


class MessageNotSent(CloudError):
    """The code could not be sent: no such number or mailbox, or the project's provider fails."""

    kind = "message_not_sent"
    default_hint = "Check the number or address; if it is right, the project's SMS or e-mail provider is at fault."


class DifferentUser(CloudError):
    """This profile belongs to another account; its memory must not reach this one."""

    kind = "different_user"
    default_hint = "Log in with the account this memory belongs to, or use another XIAOBAI_DATA_DIR for this user."


class NotSynced(CloudError):
    """Something would be thrown away that exists on this device only."""

    kind = "not_synced"
    default_hint = "Sync first (`xiaobai-memory sync`), or say that it may be lost: `--even-unsent` (`evenUnsent`)."


class Forbidden(CloudError):
    """The server knows us and says no (42501): a revoked device, or a policy."""

    kind = "forbidden"
    default_hint = "This device may have been revoked; check `xiaobai-memory status` and the list of devices."


class DeviceRevoked(Forbidden):
    """This device, or the key it has, was revoked: for ever."""

    kind = "device_revoked"
    default_hint = (
        "It stays revoked. What it remembers stays in its file and is no longer sent; to go on with the cloud, "
        "start with a new XIAOBAI_DATA_DIR and another XIAOBAI_DEVICE_ID."
    )


class DeviceKeyInUse(Forbidden):
    """Another device of the account has this public key: the data directory was copied."""

    kind = "device_key_in_use"
    default_hint = "This installation makes a key of its own by itself; if it does not, use a new XIAOBAI_DATA_DIR."


class DeviceUnknown(Forbidden):
    """The account has no such device."""

    kind = "device_unknown"
    default_hint = "`xiaobai-memory devices list` shows the ids of this account's devices."


class SchemaMismatch(CloudError):
    """The project lacks our tables or function, or has older ones."""

    kind = "schema_mismatch"
    default_hint = "Run the migrations in sql/migrations on the Supabase project (see sql/README.md)."


class Rejected(CloudError):
    """The server refuses this request for good; sending it again unchanged cannot help."""

    kind = "rejected"

    def __init__(self, message: str, *, code: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class DeviceForked(CloudError):
    """The server knows this replica's numbers under other event ids: a clone or a restored backup."""

    kind = "device_forked"
    default_hint = "This data directory was copied or restored; it continues as a new replica."


class DeviceConflict(CloudError):
    """Another live installation speaks for the same device id.

    `holder`: its replica id, when this device has proved with its key that it is the same device.
    """

    kind = "device_conflict"
    default_hint = (
        "If this device lost its database, it goes on by itself within eleven minutes. If the other one is another"
        " machine, give one of the two another XIAOBAI_DEVICE_ID."
    )

    def __init__(self, message: str, *, hint: str | None = None, holder: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


# --- the local network -------------------------------------------------------------------------------------


class LanError(XiaobaiError):
    """Anything that went wrong between this device and another one on the local network."""

    kind = "lan_error"
    default_hint = "Nothing is lost: `xiaobai-memory lan status` shows connected devices, and what was refused."


class LanOff(LanError):
    """This device takes no part in the local network now."""

    kind = "lan_off"
    default_hint = "Start the app or `xiaobai-memory serve`; XIAOBAI_LAN__ENABLED must not be `off`."


class PeerUnreachable(LanError):
    """No connection to the other device could be made."""

    kind = "peer_unreachable"
    retryable = True
    default_hint = (
        "Check address and port (`xiaobai-memory lan status` on the other device shows them), and its firewall."
    )


class PeerRefused(LanError):
    """One of the two devices refuses the other. `cause` is a word of `lan/status`."""

    kind = "peer_refused"
    default_hint = (
        "Both devices must be logged in to one account, and have synced since; a revoked device stays revoked."
    )

    def __init__(self, message: str, *, cause: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.cause = cause


def location_of(error: BaseException) -> str:
    """`module file:line function` of the innermost frame, for logs; no values, no exception text."""
    trace = error.__traceback__
    if trace is None:
        return type(error).__name__
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    file = code.co_filename.replace("\\", "/").rsplit("/", 2)[-2:]
    return f"{type(error).__name__} at {'/'.join(file)}:{trace.tb_lineno} in {code.co_name}"
