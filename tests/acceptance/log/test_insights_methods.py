"""Insights over JSON-RPC and the command line: the same answers, read-only, from a cache."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.sidecar import Home, Sidecar, wait_until

FEEDBACK = {"type": "user_feedback", "payload": {"feedback_type": "correction", "content": "先写测试"}}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def tool(stage: str) -> dict[str, object]:
    return {"type": "tool_call", "session_id": "s1", "payload": {"tool": "Edit", "stage": stage}}


def test_rpc_and_command_line_answer_the_same_and_write_nothing(home: Home) -> None:
    with Sidecar(home) as sidecar:
        calls = [tool("design"), tool("implement"), tool("test"), tool("implement")]
        sidecar.call(
            "events/appendBatch", events=[*calls, *({**FEEDBACK, "session_id": name} for name in ("s1", "s2"))]
        )
        sidecar.update("<b>火锅</b>店几点开门")
        sidecar.update("火锅 店几点开门？", idempotencyKey="again")
        head = sidecar.call("events/files")["head"]
        following = sidecar.call("insights/next", stage="implement", sessionId="s1")
        assert [step["step"] for step in following["stages"]] == ["test"]
        (instinct,) = sidecar.call("insights/instincts", status="candidate")["instincts"]
        assert (instinct["text"], len(instinct["evidence"])) == ("先写测试", 2)
        page = sidecar.call("insights/report", format="html")["text"]
        assert "<svg" in page
        assert "<b>" not in page
        assert sidecar.call("events/files")["head"] == head
        profile = sidecar.call("insights/profile")
        assert home.json("insights", "profile") == profile
    cache = json.loads((home.database.parent / "insights.json").read_text("utf-8"))
    assert cache["source_watermark"] == head
    assert home.run("insights", "report").stdout.startswith("# 记忆分析报告\n")
    assert home.run("insights", "next", "--stage", "implement").stdout.count("implement → test") == 1


@pytest.mark.parametrize("serves", [False, True])
def test_an_erased_event_leaves_the_cache_before_the_next_call(home: Home, *, serves: bool) -> None:
    home.settings["PRIVACY__STORE_MESSAGES"] = "true"
    payload = {"role": "user", "content": "什么是 canary4711 呢"}
    home.run("events", "append", json.dumps({"type": "message", "session_id": "s1", "payload": payload}))
    home.run("insights", "report")
    cache = home.database.parent / "insights.json"
    assert "canary4711" in cache.read_text("utf-8")
    with Sidecar(home) if serves else nullcontext():
        home.run("forget", "--query", "canary4711", "--yes")
        wait_until(lambda: not cache.exists())
