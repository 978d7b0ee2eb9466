"""Which lines and headings are marked with the device or the program that wrote them."""

from typing import Literal

import pytest
from msgspec.structs import replace

from sync.document.markdown.model import Snapshot
from sync.document.markdown.parse import parse
from sync.document.markdown.template import WORK_HABITS
from sync.document.read.line_authors import LineAuthors, LineLabel, with_author_labels
from sync.document.read.results import LoadResult
from sync.log.devices.device_registry import DeviceRegistry, RegisteredDevice
from sync.log.model import Event, Origin
from sync.texts.language import LanguageChoice
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
    labels = sources.author_labels(SNAPSHOT, registry)
    return {entry: label.zh for entry, label in labels.items() if isinstance(entry, str)}


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


def test_the_newest_event_decides() -> None:
    typed, own_document = line("one", "- 零", "here"), line("one", "- 二", "there", kind="entry_edited", n=2)
    edited = replace(own_document, payload={**own_document.payload, "shared": True})
    assert marks(edited, typed) == {"one": "来自 书房[2]"}
    assert marks(own_document, typed) == {}, "other devices edit documents of their own"


def test_only_the_exact_text_of_a_line_of_the_users_that_stands_makes_a_line_the_users() -> None:
    both = line("one", "- 一", "there", n=2)
    assert marks(line("one", "- 一", "here"), both) == {}, "said on both devices"
    assert marks(line("one", "- 一吗", "here"), both) == {"one": "来自 书房[2]"}
    assert marks(line("one", "- 一", "here"), replace(both, origin="tool")) == {"one": "来自 工具"}
    assert marks(line("one", "- 一", "there"), line("gone", "- 一", "here")) == {"one": "来自 书房[2]"}
    text = "## 用户偏好\n- 一\n- 一\n- 一吗\n\n## 别处\n- 一\n"
    snapshot = Snapshot(parse(text.encode()), ("own", "same", "question", "elsewhere"))
    sources = LineAuthors({"here"})
    sources.add([line(name, "- 一", "here", "tool") for name in snapshot.ids[1:]])
    assert sources.author_labels(snapshot, DeviceRegistry()).keys() == {"question", "elsewhere", ("别处",)}


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_heading_that_only_others_made_has_their_label_also_in_an_excerpt(language: Literal["zh", "en"]) -> None:
    text = (
        "# 记忆\n\n## 用户偏好\n\n### 命令甲\n- 一\n\n### 工作习惯\n- 二\n\n### 我的\n- 三\n- 四\n\n"
        "## 重要对话记录\n\n### 2026/1/8\n- 五\n\n## 命令乙\n\n### 命令丙\n"
    )
    snapshot = Snapshot(parse(text.encode()), tuple("abcde"))
    sources = LineAuthors({"here"})
    others = [line(name, f"- {name}", "here", "tool") for name in ("a", "b", "d", "e")]
    removed = line("gone", "- x", "here", "tool")
    section = {"section": ["命令乙 ##", "命令丙"]}
    sources.add([*others, replace(removed, payload={**removed.payload, **section})])
    labels = sources.author_labels(snapshot, DeviceRegistry())
    headings = {key for key in labels if isinstance(key, tuple)}
    assert headings == {("用户偏好", "命令甲"), ("命令乙",), ("命令乙", "命令丙")}
    result = [
        LoadResult.of(snapshot, labels, (), most, language=LanguageChoice(language), source="local", updated_at=None)
        for most in (None, 450 if language == "zh" else 660)
    ]
    label = "【来自 工具】" if language == "zh" else "【from a tool】"
    for shown in (one.content for one in result):
        named = [text for text in shown.splitlines() if "命令" in text]
        assert named
        assert all(label in text for text in named), shown


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
