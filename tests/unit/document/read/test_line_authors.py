"""Which lines under 用户偏好 are marked with the device or the program that wrote them."""

from msgspec.structs import replace

from sync.document.markdown.model import Snapshot
from sync.document.markdown.parse import parse
from sync.document.markdown.template import WORK_HABITS
from sync.document.read.line_authors import LineAuthors, LineLabel, with_author_labels
from sync.log.devices.device_registry import DeviceRegistry, RegisteredDevice
from sync.log.model import Event, Origin
from tests.unit.document.read.test_other_devices import event

TEXT = "# 记忆\n\n## 用户偏好\n\n### 工作习惯\n- 一\n  * 二\n\n## 约定\n- 三\n"
TOOL = LineLabel("来自 工具", "from a tool")
SNAPSHOT = Snapshot(parse(TEXT.encode()), ("one", "two", "three"))


def line(
    entry_id: str, text: str, device: str, origin: str = "user-typed", kind: str = "entry_added", n: int = 1
) -> Event:
    return replace(event(kind, {"entry_id": entry_id, "text": text}, number=n), device_id=device, origin=origin)


def marks(*events: Event) -> dict[str, str]:
    sources = LineAuthors({"here"})
    sources.add(events)
    registry = DeviceRegistry({"there": RegisteredDevice("书房【2】")})
    return {entry: label.zh for entry, label in sources.author_labels(SNAPSHOT, registry).items()}


def test_a_line_of_another_device_is_marked_with_its_name_and_one_typed_here_is_not() -> None:
    assert marks(line("one", "- 一", "there"), line("two", "* 二", "here")) == {"one": "来自 书房[2]"}
    assert marks(line("one", "- 一", "elsewhere")) == {"one": "来自 elsewher"}
    assert marks(line("three", "- 三", "there")) == {"three": "来自 书房[2]"}


def test_a_line_that_a_program_appended_is_marked_as_a_tool_s() -> None:
    assert marks(line("one", "- 一", "here", "tool")) == {"one": "来自 工具"}
    assert marks(line("one", "- 一", "here", "imported")) == {}
    doors = {
        "import": "导入",
        "project": "项目文件",
        "app_db": "来自 应用",
        "cloud_document": "来自 云端",
        "hand": None,
    }
    for door, label in doors.items():
        written = replace(line("one", "- 一", "here"), extra={"door": door})
        assert marks(written) == ({} if label is None else {"one": label}), door


def test_the_newest_event_decides_and_the_same_words_typed_here_make_it_the_users_own() -> None:
    typed, own_document = line("one", "- 零", "here"), line("one", "- 二", "there", kind="entry_edited", n=2)
    edited = replace(own_document, payload={**own_document.payload, "shared": True})
    assert marks(edited, typed) == {"one": "来自 书房[2]"}
    assert marks(own_document, typed) == {}, "other devices edit documents of their own"
    assert marks(line("one", "- 一", "there"), line("copy", "* 一。", "here")) == {}


def test_a_claimed_preference_counts_as_one_of_its_device() -> None:
    item = {"entry_id": "one", "section": list(WORK_HABITS), "text": "一", "origin": str(Origin.USER)}
    claimed = replace(event("exchange_recorded", {"question": "q", "preferences": [item]}), device_id="there")

    assert marks(claimed) == {"one": "来自 书房[2]"}


def test_a_line_of_a_device_that_is_not_admitted_is_marked_as_a_new_devices() -> None:
    """Its name is its own claim."""
    sources = LineAuthors({"here"})
    sources.add([line("one", "- 一", "there-1234")])
    registry = DeviceRegistry({"there-1234": RegisteredDevice("用户")}, has_first=True)
    assert sources.author_labels(SNAPSHOT, registry) == {
        "one": LineLabel("来自 新设备 there-12", "from new device there-12")
    }


def test_a_mark_follows_the_bullet_and_nothing_else_changes() -> None:
    assert with_author_labels(SNAPSHOT, {}).text == TEXT
    shown = with_author_labels(SNAPSHOT, {"one": LineLabel("来自 书房", "from 书房"), "two": TOOL}).text
    assert shown == TEXT.replace("- 一", "- 【来自 书房】一").replace("* 二", "* 【来自 工具】二")


def test_an_exchange_of_another_program_is_marked_on_each_of_its_lines() -> None:
    snapshot = Snapshot(parse("# 记忆\n\n- 用户问：甲\n- AI 答：乙\n".encode()), ("evt.q", "evt.a"))
    here = replace(event("exchange_recorded", {"question": "甲", "answer": "乙"}), event_id="evt", device_id="here")
    for origin, marked in (("tool", {"evt.q": TOOL, "evt.a": TOOL}), ("model-written", {})):
        sources = LineAuthors({"here"})
        sources.add([replace(here, origin=origin)])
        assert sources.author_labels(snapshot, DeviceRegistry()) == marked


def test_every_line_of_an_entry_is_marked_whatever_splits_it() -> None:
    snapshot = Snapshot(parse("- 一\u2028- 二\n```\n三\n```\n".encode()), ("one", "two"))
    shown = with_author_labels(snapshot, {"one": TOOL, "two": TOOL}).text
    assert all("【来自 工具】" in line for line in shown.splitlines())
