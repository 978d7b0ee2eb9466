"""Every function of `sync.contract` with fixed values, and the JSON they must give.

`python -m tests.contract.golden_json` rewrites `golden/contract.json`. A change in it that is not a new name
changes the contract: raise `CONTRACT_VERSION`, and say so in the changelog.
"""

import json
from datetime import date
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.accounts.devices import DevicesJson, KnownDeviceJson
from sync.archive.model import ArchiveImportResult, ExportedJson
from sync.cloud.auth_port import AccountJson
from sync.cloud.contact import parse_contact
from sync.cloud.replication.pull_progress import PullProgress
from sync.cloud.status import CloudState, CloudStatus, RoundJson
from sync.contract import archive, daily, forgetting, redaction, retention
from sync.contract.document import device_digest_to_json, edit_to_json, history_to_json, load_to_json, update_to_json
from sync.contract.events import (
    append_results_to_json,
    appended_events_to_json,
    events_to_json,
    forgotten_to_json,
    found_events_to_json,
    quarantine_to_json,
    verification_to_json,
)
from sync.contract.health import health_to_json
from sync.contract.status import (
    AppStatus,
    cloud_status_to_json,
    code_sent_to_json,
    error_to_json,
    model_to_json,
    pull_progress_to_json,
    status_to_json,
)
from sync.daily.commands.command_handler import CommandReply
from sync.daily.config import DailyConfig
from sync.daily.conversation.command_parser import SpokenCommand
from sync.daily.conversation.command_phrases import CommandKind
from sync.daily.model import Code, Content, Record
from sync.daily.pages.page_folders import EffectiveOptions
from sync.daily.record_service import ChangeResult
from sync.daily.records.maintenance import RecordMerge, ReviewQuestion
from sync.daily.service import Review
from sync.document.markdown.model import EntryAdded, EntryEdited, EntryRemoved
from sync.document.read.device_digest import DeviceDigest, DigestLine
from sync.document.read.prompt import Omission
from sync.document.read.results import LoadResult, UpdateResult, VersionJson
from sync.document.versions.rescan import RescanResult
from sync.document.versions.writer import EditResult
from sync.erasure_service import RequestedErasure
from sync.errors import LoginRequired, RateLimited
from sync.forget_service import ForgetPreview, Forgetting
from sync.log.integrity.store import ProblemJson
from sync.log.model import AppendResult, EventPage, RefusedEvent, RemoteCursor
from sync.redaction import Redactor
from sync.retention.policy import HoldReason, RetentionPlan, RetentionResult, RetentionRules
from sync.startup.checks import HealthCheck
from sync.understanding.second_reader.model_port import ModelStatus
from tests.contract.note_samples import note_samples
from tests.support import event

FILE: Final = Path(__file__).with_name("golden") / "contract.json"
_MODEL: Final = ModelStatus("client", 20, 3, 900, 4, 5, 6, "the model did not answer in time")
SHA: Final = "0123456789abcdef" * 4
SECTION: Final = ("用户偏好", "工作习惯")

_ACCOUNT = AccountJson("logged_in", "user-1", "a@example.com")
_CLOUD = CloudStatus(
    CloudState.REFUSED,
    "2026-01-08T07:49:12.000Z",
    LoginRequired("nobody is logged in"),
    RemoteCursor("epoch", 7, "evt_7", 9, "2026-01-08T07:49:12.000Z"),
)
_DEVICE = DeviceDigest("device-b", "办公室", (DigestLine(date(2026, 1, 8), "用户问：一"),))
_SEEN = "2026-01-08T07:49:12.000Z"
_EVENTS = (
    event(1, event_id="evt_1", position=3, server_seq=11, server_ts="2026-01-08T07:49:13.000Z"),
    event(2, event_id="evt_2", position=4),
)
_TAKEN = ArchiveImportResult(
    "archive", found=9, recorded=4, known=4, refused=1, refusals=[("evt_9", "payload.role is wrong")]
)
_PLAN = RetentionPlan(
    RetentionRules(0, 4_096), 9, 900, [1, 2], 80, _SEEN, _SEEN, {HoldReason.NOT_YET_CONSUMED: 1}, {"their.backup": 7}
)
_PROBLEMS = [ProblemJson("a row points nowhere", 2, ("1", "2"))]
_FOUND = {one.event_id: one for one in _EVENTS}
_PAGE = EventPage(_EVENTS, 4)
_RECORD = Record(
    "rec_1",
    "evt_1",
    "2026-01-29",
    "14:30",
    1,
    Content("端口", ("用 8080",), (Code("toml", "port = 8080"),), ("配置",)),
    "project_1",
    "/家/项目",
    "device-a",
    session_id="sess_1",
    author="extractive",
    quality=0.75,
    marks=("important",),
)
_BY_HAND = Record(
    "rec_2", "evt_2", "2026-01-29", "15:00", 2, Content("火锅"), "global", None, "device-a", author="hand"
)
_EXAMINED = Redactor().examine("打 138" + "00138000")


def samples() -> dict[str, list[Any]]:
    """What each function answers, by its name: with everything set, and with nothing."""
    return {
        **_kept_and_gone(),
        **_daily_samples(),
        **note_samples(),
        "account_to_json": [
            _ACCOUNT,
            AccountJson("guest", None, None),
        ],
        "appended_events_to_json": [appended_events_to_json(_PAGE, 2)],
        "cloud_status_to_json": [
            cloud_status_to_json(_CLOUD),
            cloud_status_to_json(CloudStatus(CloudState.OFF, None, None, RemoteCursor())),
        ],
        "code_sent_to_json": [code_sent_to_json(parse_contact(phone="13800138000"))],
        "device_digest_to_json": [device_digest_to_json(_DEVICE)],
        "devices_to_json": [_devices()],
        "edit_to_json": [edit_to_json(_edited())],
        "events_to_json": [events_to_json(_PAGE), events_to_json(EventPage((), 0))],
        "found_events_to_json": [found_events_to_json({"evt_9": None, "evt_1": _EVENTS[0].event_id}, _FOUND)],
        "error_to_json": [error_to_json(RateLimited("too many requests", retry_after=3.0))],
        "health_to_json": [
            health_to_json(
                [HealthCheck("key", True, "a publishable key"), HealthCheck("file", False, "gone", "Make it.")]
            )
        ],
        "history_to_json": [
            history_to_json([VersionJson(SHA, "2026/1/8 15:49:12", "hand", "2026-01-08T07:49:12.000Z", 3)])
        ],
        "load_to_json": [load_to_json(_loaded())],
        "pull_progress_to_json": [pull_progress_to_json(PullProgress(1, "report", 2_000, 5_000))],
        "quarantine_to_json": [
            quarantine_to_json([RefusedEvent("evt_1", "22023", "too strange", "2026-01-08T07:49:12.000Z")], ["evt_2"])
        ],
        "forgotten_to_json": [forgotten_to_json(_ERASED)],
        "append_results_to_json": [
            append_results_to_json([AppendResult(_EVENTS[0], False), AppendResult(_EVENTS[1], True)])
        ],
        "sync_round_to_json": [RoundJson(3, 2, 1)],
        "model_to_json": [model_to_json(_MODEL)],
        "status_to_json": [status_to_json(_status())],
        "update_to_json": [
            update_to_json(UpdateResult("evt_1", True, None, 2)),
            update_to_json(UpdateResult(None, False, "nothing_said", 0)),
        ],
        "verification_to_json": [verification_to_json(found, 9) for found in (_PROBLEMS, [])],
    }


def _daily_samples() -> dict[str, list[Any]]:
    return {
        "daily.config_to_json": [
            daily.config_to_json(EffectiveOptions(DailyConfig(), {}, Path("/家/config.json"), "no JSON"))
        ],
        "daily.merge_to_json": [
            daily.merge_to_json([RecordMerge(_RECORD, _RECORD.content, (_BY_HAND,))], dry_run=True)
        ],
        "daily.change_result_to_json": [
            daily.change_result_to_json(ChangeResult(_RECORD, None, "evt_1")),
            daily.change_result_to_json(ChangeResult(None, "too_short")),
        ],
        "daily.record_to_json": [daily.record_to_json(_RECORD), daily.record_to_json(_BY_HAND)],
        "daily.command_reply_to_json": [
            daily.command_reply_to_json(
                CommandReply(SpokenCommand(CommandKind.SHOW), True, "在这里", (_RECORD,), None, "## 1", None),
                recall=False,
            ),
            daily.command_reply_to_json(
                CommandReply(SpokenCommand(CommandKind.SKIP, is_chinese=False), True, "not kept", event_id="evt_1"),
                recall=True,
            ),
        ],
        "daily.review_to_json": [
            daily.review_to_json(Review((ReviewQuestion(_RECORD, "old"),), is_due=True), chinese=True),
            daily.review_to_json(Review((), is_due=False), chinese=False),
        ],
    }


_ERASED: Final = RequestedErasure(["evt_1"], ["/项目/.xiaobai/memory/notes/MEM-1.md: it was changed by hand"])


def _kept_and_gone() -> dict[str, list[Any]]:
    return {
        "archive.export_to_json": [ExportedJson("/家/all.xbm", 7, 2, 4_096, SHA, sealed=True)],
        "archive.import_to_json": [
            archive.import_to_json(_TAKEN),
            archive.import_to_json(ArchiveImportResult("claude", 1, found=4, recorded=4, dry_run=True)),
        ],
        "forgetting.forget_preview_to_json": [
            forgetting.forget_preview_to_json(ForgetPreview(tuple(_EVENTS), "7.0123")),
        ],
        "forgetting.accepted_forget_to_json": [
            forgetting.accepted_forget_to_json(Forgetting(tuple(_EVENTS), "2026-01-08T07:49:22.000Z", "evt_9")),
            forgetting.accepted_forget_to_json(
                Forgetting((), "2026-01-08T07:49:12.000Z", kept_files=("a.md: changed by hand",))
            ),
        ],
        "forgetting.forget_matching_to_json": [
            forgetting.forget_matching_to_json(_EVENTS, None),
            forgetting.forget_matching_to_json([], _ERASED),
        ],
        "redaction.check_to_json": [redaction.check_to_json(_EXAMINED)],
        "redaction.redacted_file_to_json": [
            redaction.redacted_file_to_json("notes.md", _EXAMINED, None),
            redaction.redacted_file_to_json("notes.md", _EXAMINED, "clean.md"),
        ],
        "redaction.rescan_to_json": [
            redaction.rescan_to_json(RescanResult(9, ("evt_1",), {"手机号": 1}, applied=True, unread=("2026.xbm",)))
        ],
        "retention.retention_to_json": [
            retention.retention_to_json(RetentionResult(_PLAN, "/家/archive/old.xbm", SHA, 2), applied=True),
            retention.retention_to_json(RetentionResult(RetentionPlan(RetentionRules(), 0, 0)), applied=False),
        ],
    }


def _devices() -> DevicesJson:
    own = KnownDeviceJson("device-a", "家里", "Linux", "0.1.0", "ed25519:AA", _SEEN, False, None, False, True, False)
    lost = KnownDeviceJson("device-b", None, None, None, None, None, True, _SEEN, True, False, True)
    return DevicesJson("cloud", _SEEN, (own, lost), logins=None)


def _edited() -> EditResult:
    operations = (
        EntryAdded("ent_a", None, SECTION, "- 早起"),
        EntryEdited("ent_b", "- 茶", "- 绿茶", SECTION),
        EntryRemoved("ent_c", "- 咖啡", SECTION),
    )
    return EditResult(operations, SHA)


def _loaded() -> LoadResult:
    return LoadResult(
        content="# AI 对话记忆\n",
        document="# AI 对话记忆\n",
        document_sha256=SHA,
        digest="## 其他设备的记忆（只读）\n",
        source="cloud",
        stale=False,
        pending=1,
        through_seq=7,
        updated_at="2026-01-08T07:49:12.000Z",
        devices=(_DEVICE,),
        omitted=(Omission("重要对话记录", 4),),
    )


def _status() -> AppStatus:
    return AppStatus(
        account=_ACCOUNT,
        device_id="device-a",
        device_name="家里",
        replica_id="rep_a",
        cloud=_CLOUD,
        pending=1,
        quarantined=2,
        document_path="/home/a/xiaobai-ai-memory.md",
        document_sha256=SHA,
        warnings=("document_missing",),
        watching=True,
        sidecar=True,
        version="0.0.0",
        model=_MODEL,
    )


def as_text() -> str:
    return json.dumps(msgspec.to_builtins(samples()), ensure_ascii=False, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(as_text(), "utf-8")
