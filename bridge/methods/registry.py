"""All JSON-RPC methods. A row names its function, which is imported at the first call.

The function's docstring is the summary of the method; its annotations name the parameters and the result.
"""

from typing import Final

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import DEFAULT_TIMEOUT, LazyMethod, MethodTable


def _row(name: str, target: str, timeout: float | None = DEFAULT_TIMEOUT) -> LazyMethod:
    """A row whose `target` is in this package."""
    return LazyMethod(name, f"bridge.methods.{target}", timeout)


METHOD_TABLE: Final[MethodTable[AppProvider]] = MethodTable(
    [
        _row("initialize", "memory.load_update:initialize"),
        _row("memory/load", "memory.load_update:load"),
        _row("memory/update", "memory.load_update:update"),
        _row("memory/systemPrompt", "memory.load_update:system_prompt"),
        _row("memory/save", "memory.document:save"),
        _row("memory/history", "memory.document:history"),
        _row("memory/restore", "memory.document:restore"),
        _row("memory/resolve", "memory.document:resolve"),
        _row("sync/status", "account.cloud:status"),
        _row("sync/now", "account.cloud:sync_now", timeout=None),
        _row("sync/quarantine", "account.cloud:quarantine"),
        _row("auth/start", "account.auth:send_code"),
        _row("auth/verify", "account.auth:verify_code"),
        _row("auth/password", "account.auth:log_in_with_password"),
        _row("auth/setSession", "account.auth:set_session"),
        _row("auth/status", "account.auth:status"),
        _row("auth/logout", "account.auth:logout"),
        _row("devices/list", "account.devices:list_devices"),
        _row("devices/rename", "account.devices:rename"),
        _row("devices/revoke", "account.devices:revoke"),
        _row("devices/hide", "account.devices:hide"),
        _row("events/append", "log.events:append"),
        _row("events/appendBatch", "log.events:append_batch"),
        _row("events/forget", "log.events:forget"),
        _row("events/read", "log.events:read"),
        _row("events/tail", "log.events:tail"),
        _row("events/unfollow", "log.events:unfollow"),
        _row("events/forgetMatching", "log.forget:forget_matching", timeout=None),
        _row("events/files", "log.event_files:describe_files"),
        _row("events/rebuildFiles", "log.event_files:rebuild_files", timeout=None),
        _row("events/import", "log.event_files:import_files", timeout=None),
        _row("sessionMeta/upsert", "log.event_files:upsert_session_meta"),
        _row("sessionMeta/list", "log.event_files:list_sessions"),
        _row("insights/next", "memory.insights:next_steps", timeout=None),
        _row("insights/profile", "memory.insights:profile", timeout=None),
        _row("insights/instincts", "memory.insights:instincts", timeout=None),
        _row("insights/report", "memory.insights:report", timeout=None),
        _row("recall/search", "memory.recall:search"),
        _row("recall/context", "memory.recall:recall_context"),
        _row("daily/record", "memory.daily:record"),
        _row("daily/add", "memory.daily:add"),
        _row("daily/edit", "memory.daily:edit"),
        _row("daily/remove", "memory.daily:remove"),
        _row("daily/mark", "memory.daily:mark"),
        _row("daily/undo", "memory.daily:undo"),
        _row("daily/show", "memory.daily:show"),
        _row("daily/list", "memory.daily:list_records"),
        _row("daily/review", "memory.daily:review"),
        _row("daily/merge", "memory.daily:merge"),
        _row("daily/clean", "memory.daily:clean", timeout=None),
        _row("daily/config", "memory.daily:config"),
        _row("daily/status", "memory.daily:status"),
        _row("lessons/learn", "memory.lessons:learn"),
        _row("lessons/list", "memory.lessons:list_lessons"),
        _row("lessons/show", "memory.lessons:show"),
        _row("lessons/edit", "memory.lessons:edit"),
        _row("lessons/judge", "memory.lessons:judge"),
        _row("lessons/clean", "memory.lessons:clean"),
        _row("lessons/stats", "memory.lessons:stats"),
        _row("lessons/export", "memory.lessons:export_lessons"),
        _row("lessons/import", "memory.lessons:import_lessons"),
        _row("lessons/match", "memory.lessons:match"),
        _row("lessons/capture", "memory.lessons:capture"),
        _row("memory/command", "memory.spoken_commands:run_command", timeout=None),
        _row("archive/export", "log.archive:export_archive", timeout=None),
        _row("archive/import", "log.archive:import_archive", timeout=None),
        _row("retention/plan", "log.retention:plan"),
        _row("retention/apply", "log.retention:apply", timeout=None),
        _row("watermarks/get", "log.watermarks:get_watermark"),
        _row("watermarks/set", "log.watermarks:set_watermark"),
        _row("events/verify", "log.watermarks:verify_log", timeout=None),
        _row("redaction/check", "log.redaction:check"),
        _row("redaction/rescan", "log.redaction:rescan", timeout=None),
        _row("doctor", "doctor:doctor"),
    ]
)
