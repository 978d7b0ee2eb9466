"""All JSON-RPC methods. A row names its function and its parameter type; they are imported at the first call."""

from typing import Final

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import DEFAULT_TIMEOUT, LazyMethod, MethodTable


def _row(name: str, target: str, params_type: str, summary: str, timeout: float | None = DEFAULT_TIMEOUT) -> LazyMethod:
    """A row whose `target` lies in this package."""
    return LazyMethod(name, f"bridge.methods.{target}", params_type, summary, timeout)


METHOD_TABLE: Final[MethodTable[AppProvider]] = MethodTable(
    [
        _row(
            "initialize",
            "memory.load_update:initialize",
            "Initialize",
            "Agree on a version; watch the parent process.",
        ),
        _row(
            "memory/load",
            "memory.load_update:load",
            "Load",
            "The newest known memory; never fails because of the network.",
        ),
        _row("memory/update", "memory.load_update:update", "Update", "Record one exchange; durable when answered."),
        _row(
            "memory/systemPrompt",
            "memory.load_update:system_prompt",
            "Load",
            "The memory as a block to inject into a system prompt.",
        ),
        _row(
            "memory/save", "memory.document:save", "Save", "Save a whole document, as a hand edit of what load showed."
        ),
        _row("memory/history", "memory.document:history", "History", "The versions of the document, newest first."),
        _row("memory/restore", "memory.document:restore", "Restore", "Bring a version back, as new events."),
        _row(
            "memory/resolve",
            "memory.document:resolve",
            "Resolve",
            "Answer a mass delete or erasure: accept it, or keep what was there.",
        ),
        _row(
            "sync/status",
            "account.cloud:status",
            "NoParams",
            "Account, device, cloud, what waits, warnings about the file.",
        ),
        _row("sync/now", "account.cloud:sync_now", "Now", "Push and pull until level; what was done.", timeout=None),
        _row(
            "sync/quarantine",
            "account.cloud:quarantine",
            "QuarantineParams",
            "Events the server refuses: list, retry or drop them.",
        ),
        _row("auth/start", "account.auth:send_code", "Start", "Send a code to a phone (SMS) or an e-mail address."),
        _row(
            "auth/verify",
            "account.auth:verify_code",
            "Verify",
            "Log in with the code that was sent; a first login makes the account.",
        ),
        _row(
            "auth/password",
            "account.auth:log_in_with_password",
            "Password",
            "Log in with phone number or e-mail address, and password.",
        ),
        _row(
            "auth/setSession",
            "account.auth:set_session",
            "SetSession",
            "Work with a session that the app opened and refreshes.",
        ),
        _row("auth/status", "account.auth:status", "NoParams", "Whose memory this is, and whether he is logged in."),
        _row(
            "auth/logout",
            "account.auth:logout",
            "Logout",
            "End the session; the memory stays on this device, or goes if asked.",
        ),
        _row(
            "devices/list",
            "account.devices:list_devices",
            "NoParams",
            "The account's devices; without an answer of the cloud, those known here.",
        ),
        _row("devices/rename", "account.devices:rename", "RenameParams", "Give a device a name, for all devices."),
        _row(
            "devices/revoke", "account.devices:revoke", "Revoke", "Shut a device out of the account's cloud, for ever."
        ),
        _row(
            "devices/hide",
            "account.devices:hide",
            "Hide",
            "Leave a device out of this device's digest, or take it in again.",
        ),
        _row("events/append", "log.events:append", "Append", "Record one event; idempotent on its event_id."),
        _row("events/appendBatch", "log.events:append_batch", "AppendBatch", "Record all events of an array, or none."),
        _row(
            "events/forget",
            "log.events:forget",
            "Forget",
            "Take the payloads of events away, here, on the server and everywhere.",
        ),
        _row("events/read", "log.events:read", "Read", "Events after a position, oldest first."),
        _row(
            "events/tail",
            "log.events:tail",
            "TailParams",
            "The newest events; with follow, the later ones too, as events/appended.",
        ),
        _row("events/unfollow", "log.events:unfollow", "NoParams", "End what events/tail began with follow."),
        _row(
            "events/forgetMatching",
            "log.forget:forget_matching",
            "ForgetMatching",
            "Forget by words, source or time, here, on the server and everywhere; by default says only what would go.",
            timeout=None,
        ),
        _row(
            "events/files",
            "log.event_files:describe_files",
            "NoParams",
            "Where the JSONL files of the log lie, and how far they have come.",
        ),
        _row(
            "events/rebuildFiles",
            "log.event_files:rebuild_files",
            "NoParams",
            "Make those files what the log says.",
            timeout=None,
        ),
        _row(
            "events/import",
            "log.event_files:import_files",
            "Import",
            "Record the events of JSONL files; idempotent.",
            timeout=None,
        ),
        _row(
            "sessionMeta/upsert",
            "log.event_files:upsert_session_meta",
            "Upsert",
            "Say something of a session: title, tags, summary, anything.",
        ),
        _row(
            "sessionMeta/list",
            "log.event_files:list_sessions",
            "List",
            "Sessions of a project, or of all, newest first.",
        ),
        _row(
            "insights/next",
            "memory.insights:next_steps",
            "NextParams",
            "What usually comes next, with its evidence.",
            timeout=None,
        ),
        _row(
            "insights/profile",
            "memory.insights:profile",
            "ProfileParams",
            "Languages, tools, stages, hours, preferences.",
            timeout=None,
        ),
        _row(
            "insights/instincts",
            "memory.insights:instincts",
            "Instincts",
            "What experience suggests, the surest first.",
            timeout=None,
        ),
        _row(
            "insights/report",
            "memory.insights:report",
            "ReportParams",
            "The analysis report: Markdown, or one HTML page.",
            timeout=None,
        ),
        _row("recall/search", "memory.recall:search", "Search", "What is kept that answers a question, best first."),
        _row(
            "recall/context",
            "memory.recall:recall_context",
            "ContextParams",
            "What to put before a message, fenced; empty where nothing is relevant.",
        ),
        _row(
            "daily/record",
            "memory.daily:record",
            "RecordingParams",
            "Keep a conversation: a session, its turns, or the caller's summary.",
        ),
        _row("daily/add", "memory.daily:add", "Adding", "Add a record by hand."),
        _row("daily/edit", "memory.daily:edit", "Editing", "Change parts of a record."),
        _row("daily/remove", "memory.daily:remove", "One", "Take a record away; daily/undo brings it back."),
        _row(
            "daily/mark", "memory.daily:mark", "Marking", "Mark a record as important, outdated, reviewed or sensitive."
        ),
        _row("daily/undo", "memory.daily:undo", "Undoing", "Take back a deed, an undo included."),
        _row("daily/show", "memory.daily:show", "Showing", "A day as its page shows it."),
        _row("daily/list", "memory.daily:list_records", "Listing", "Records, newest first."),
        _row(
            "daily/review",
            "memory.daily:review",
            "Reviewing",
            "What to ask a person about: outdated, doubtful or old records.",
        ),
        _row("daily/merge", "memory.daily:merge", "Merging", "Fold a day's repeats."),
        _row(
            "daily/clean",
            "memory.daily:clean",
            "Cleaning",
            "What is older than it is to be kept; put away with confirm.",
            timeout=None,
        ),
        _row("daily/config", "memory.daily:config", "Configuring", "The options of config.json, read or set."),
        _row(
            "daily/status",
            "memory.daily:status",
            "NoParams",
            "How many records there are, what is due, which pages were left alone.",
        ),
        _row(
            "memory/command",
            "memory.spoken_commands:run_command",
            "Saying",
            "What a person says to his memory, in Chinese or English.",
            timeout=None,
        ),
        _row(
            "archive/export",
            "log.archive:export_archive",
            "ArchiveExport",
            "Everything as one file, sealed where a passphrase is given.",
            timeout=None,
        ),
        _row(
            "archive/import",
            "log.archive:import_archive",
            "ArchiveImport",
            "Take an archive in, or what other programs kept; idempotent.",
            timeout=None,
        ),
        _row(
            "retention/plan",
            "log.retention:plan",
            "BoundsParams",
            "What is old enough to go from this device, and what stays; changes nothing.",
        ),
        _row(
            "retention/apply",
            "log.retention:apply",
            "BoundsParams",
            "Archive what is old, then forget it here; the cloud and other devices keep theirs.",
            timeout=None,
        ),
        _row(
            "watermarks/get",
            "log.watermarks:get_watermark",
            "Get",
            "How far a follower of the log has come; 0 where it is unknown.",
        ),
        _row(
            "watermarks/set",
            "log.watermarks:set_watermark",
            "Set",
            "Note how far a follower has come, for its next start.",
        ),
        _row(
            "events/verify",
            "log.watermarks:verify_log",
            "NoParams",
            "Whether the log is sound: numbers, deliveries, pages.",
            timeout=None,
        ),
        _row(
            "redaction/check",
            "log.redaction:check",
            "CheckParams",
            "What redaction makes of a text, with counts by kind; keeps nothing.",
        ),
        _row(
            "redaction/rescan",
            "log.redaction:rescan",
            "RescanParams",
            "Reads log and archives under the rules of today; with apply, corrects them here and everywhere else.",
            timeout=None,
        ),
        _row("doctor", "doctor:doctor", "NoParams", "Looks at everything a person can break; changes nothing."),
    ]
)
