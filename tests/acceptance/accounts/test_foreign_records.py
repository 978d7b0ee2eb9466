"""What a second login of an account does to the daily records, pauses and titles of the first one."""

from pathlib import Path
from typing import Any

from tests.acceptance.accounts.test_foreign_changes import open_device as open_device  # noqa: PLC0414 - a fixture
from tests.acceptance.environment import wait_until_synced
from tests.sidecar import Sidecar, wait_until


def records(sidecar: Sidecar) -> dict[str, tuple[str, str | None]]:
    found = sidecar.call("daily/list")["records"]
    return {record["topic"]: (record["author"], record["label"]) for record in found}


def finds(sidecar: Sidecar, text: str) -> bool:
    return any(text in hit["text"] for hit in sidecar.call("recall/search", query=text, kinds=["daily"])["hits"])


def test_it_waits_until_it_is_admitted_and_carries_its_label(open_device: Any) -> None:
    home = open_device("home")
    own = home.call("daily/add", summary={"topic": "修好了登录", "facts": ["登录改用令牌"]})["record"]["id"]
    home.call("memory/command", text="不要保存", sessionId="s1")
    home.call("sessionMeta/upsert", meta={"session_id": "s2", "title": "重构"})
    wait_until_synced(home)
    second = open_device("second")
    wait_until(lambda: "修好了登录" in records(second))
    assert records(second) == {"修好了登录": ("device", "来自 home")}
    second.call("daily/edit", id=own, topic="别的")
    second.call("daily/add", summary={"topic": "新的记录"})
    second.call("memory/command", text="记住这个", sessionId="s1")
    second.call("sessionMeta/upsert", meta={"session_id": "s2", "title": "别的"})
    assert "别的" in records(second), "it holds there"
    wait_until_synced(second)
    wait_until(lambda: "新的记录" in records(home))
    label = records(home)["新的记录"][1]
    assert label is not None
    assert label.startswith("来自 新设备")
    assert finds(home, "修好了登录"), "a search finds it as it was"
    assert records(home)["修好了登录"] == ("hand", None)
    page = home.call("daily/show")["text"]
    assert f"【{label}】\n\n### 主题\n新的记录" in page
    (written,) = Path(home.home.folder).rglob("daily/*-*-*.md")
    wait_until(lambda: written.read_text("utf-8") == page)
    assert home.update("离职打算", sessionId="s1")["reason"] == "not_to_be_saved"
    titles = {one["session_id"]: one.get("title") for one in home.call("sessionMeta/list")["sessions"]}
    assert titles["s2"] == "重构"
    home.call("devices/admit", deviceId="device-second")
    assert records(home)["别的"] == ("device", "来自 second")
    assert not finds(home, "修好了登录")
    assert home.update("离职打算", sessionId="s1")["reason"] == "not_to_be_saved", "another device never resumes it"
