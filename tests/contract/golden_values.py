"""Every function of `sync.contract` with fixed values, and the JSON they must give.

`python -m tests.contract.golden_values` writes `golden/contract.json` anew. A change in it that is not a new name is a
change of the contract: raise `CONTRACT_VERSION`, and say so in the changelog.
"""

import json
from datetime import date
from pathlib import Path
from typing import Any, Final

from sync import contract
from sync.archive.model import Exported, Taken
from sync.cloud.account import AccountState
from sync.cloud.contact import contact_of
from sync.cloud.exchange import Round
from sync.cloud.progress import Progress
from sync.cloud.replicator import CloudState, CloudStatus
from sync.contract import archive, daily, forgetting, redaction, retention
from sync.devices import DeviceList, KnownDevice
from sync.document.answers import Loaded, Updated
from sync.document.digest import DeviceDigest, DigestLine
from sync.document.ledger import Edited
from sync.document.model import EntryAdded, EntryEdited, EntryRemoved
from sync.document.prompt import Omission
from sync.document.rescan import Rescan
from sync.document.store import HistoryRow
from sync.errors import LoginRequired, RateLimited
from sync.health import Check
from sync.log.audit_store import Problem
from sync.log.model import Cursor, Page, Recorded, Refusal
from sync.memory.daily.command import Command, Kind
from sync.memory.daily.commander import Reply
from sync.memory.daily.config import Config
from sync.memory.daily.deeds import Outcome
from sync.memory.daily.model import Code, Content, Record
from sync.memory.daily.places import Options
from sync.memory.daily.room import Review
from sync.memory.daily.tidying import Fold, Question
from sync.redaction import Redactor
from sync.retention.model import Applied, Held, Plan, Rules
from tests.support import event

FILE: Final = Path(__file__).with_name("golden") / "contract.json"
SHA: Final = "0123456789abcdef" * 4
SECTION: Final = ("用户偏好", "工作习惯")

_ACCOUNT = AccountState("logged_in", "user-1", "a@example.com")
_CLOUD = CloudStatus(
    CloudState.REFUSED,
    "2026-01-08T07:49:12.000Z",
    LoginRequired("nobody is logged in"),
    Cursor("epoch", 7, "evt_7", 9, "2026-01-08T07:49:12.000Z"),
)
_DEVICE = DeviceDigest("device-b", "办公室", (DigestLine(date(2026, 1, 8), "用户问：一"),))
_SEEN = "2026-01-08T07:49:12.000Z"
_EVENTS = (
    event(1, event_id="evt_1", position=3, server_seq=11, server_ts="2026-01-08T07:49:13.000Z"),
    event(2, event_id="evt_2", position=4),
)
_TAKEN = Taken("archive", 0, 9, 4, 4, 1, refusals=[("evt_9", "payload.role is wrong")])
_PLAN = Plan(Rules(0, 4_096), 9, 900, [1, 2], 80, _SEEN, _SEEN, {Held.FOLLOWED: 1}, {"their.backup": 7})
_PAGE = Page(_EVENTS, 4)
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
        "account": [contract.account(_ACCOUNT), contract.account(AccountState("guest", None, None))],
        "appended": [contract.appended(_PAGE, 2)],
        "cloud": [contract.cloud(_CLOUD), contract.cloud(CloudStatus(CloudState.OFF, None, None, Cursor()))],
        "code_sent": [contract.code_sent(contact_of(phone="13800138000"))],
        "daily.configured": [daily.configured(Options(Config(), {}, Path("/家/config.json"), "no JSON"))],
        "daily.merged": [daily.merged([Fold(_RECORD, _RECORD.content, (_BY_HAND,))], dry_run=True)],
        "daily.outcome": [
            daily.outcome(Outcome(_RECORD, None, "evt_1")),
            daily.outcome(Outcome(None, "too_short")),
        ],
        "daily.record": [daily.record(_RECORD), daily.record(_BY_HAND)],
        "daily.reply": [
            daily.reply(Reply(Command(Kind.SHOW), True, "在这里", (_RECORD,), None, "## 1", None), recall=False),
            daily.reply(Reply(Command(Kind.SKIP, chinese=False), True, "not kept", event_id="evt_1"), recall=True),
        ],
        "daily.review": [
            daily.review(Review((Question(_RECORD, "old"),), due=True), chinese=True),
            daily.review(Review((), due=False), chinese=False),
        ],
        "device": [contract.device(_DEVICE)],
        "devices": [contract.devices(_devices())],
        "edited": [contract.edited(_edited())],
        "events": [contract.events(_PAGE), contract.events(Page((), 0))],
        "failure": [contract.failure(RateLimited("too many requests", retry_after=3.0))],
        "health": [
            contract.health([Check("key", True, "a publishable key"), Check("file", False, "gone", "Make it.")])
        ],
        "history": [contract.history([HistoryRow(SHA, "2026/1/8 15:49:12", "hand", "2026-01-08T07:49:12.000Z", 3)])],
        "loaded": [contract.loaded(_loaded())],
        "progress": [contract.progress(Progress(1, "report", 2_000, 5_000))],
        "quarantine": [
            contract.quarantine([Refusal("evt_1", "22023", "too strange", "2026-01-08T07:49:12.000Z")], ["evt_2"])
        ],
        "forgotten": [contract.forgotten(["evt_1"])],
        "recorded": [contract.recorded([Recorded(_EVENTS[0], False), Recorded(_EVENTS[1], True)])],
        "round_done": [contract.round_done(Round(3, 2, 1))],
        "status": [contract.status(_status())],
        "updated": [
            contract.updated(Updated("evt_1", True, None, 2)),
            contract.updated(Updated(None, False, "nothing_said", 0)),
        ],
        "verified": [contract.verified([Problem("a row points nowhere", 2, ("1", "2"))], 9), contract.verified([], 9)],
    }


def _kept_and_gone() -> dict[str, list[Any]]:
    return {
        "archive.exported": [archive.exported(Exported("/家/all.xbm", 7, 2, 4_096, SHA, sealed=True))],
        "archive.taken": [archive.taken(_TAKEN), archive.taken(Taken("claude", 1, 4, 4, dry_run=True))],
        "forgetting.forgetting": [forgetting.forgetting(_EVENTS, None), forgetting.forgetting([], ["evt_1"])],
        "redaction.checked": [redaction.checked(_EXAMINED)],
        "redaction.redacted_file": [
            redaction.redacted_file("notes.md", _EXAMINED, None),
            redaction.redacted_file("notes.md", _EXAMINED, "clean.md"),
        ],
        "redaction.rescanned": [
            redaction.rescanned(Rescan(9, ("evt_1",), {"手机号": 1}, applied=True, unread=("2026.xbm",)))
        ],
        "retention.retention": [
            retention.retention(Applied(_PLAN, "/家/archive/old.xbm", SHA, 2), applied=True),
            retention.retention(Applied(Plan(Rules(), 0, 0)), applied=False),
        ],
    }


def _devices() -> DeviceList:
    own = KnownDevice("device-a", "家里", "Linux", "0.1.0", "ed25519:AA", _SEEN, False, None, False, True)
    lost = KnownDevice("device-b", None, None, None, None, None, True, _SEEN, True, False)
    return DeviceList("cloud", _SEEN, (own, lost))


def _edited() -> Edited:
    operations = (
        EntryAdded("ent_a", None, SECTION, "- 早起"),
        EntryEdited("ent_b", "- 茶", "- 绿茶", SECTION),
        EntryRemoved("ent_c", "- 咖啡", SECTION),
    )
    return Edited(operations, SHA)


def _loaded() -> Loaded:
    return Loaded(
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


def _status() -> contract.Status:
    return contract.Status(
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
    )


def as_text() -> str:
    return json.dumps(samples(), ensure_ascii=False, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(as_text(), "utf-8")
