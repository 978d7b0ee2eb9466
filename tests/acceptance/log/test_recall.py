"""Search through the real program: found at once, by sidecar and command; no context if nothing is relevant."""

import json
import os
from pathlib import Path

import pytest

from tests.sidecar import REPOSITORY, CallFailed, Home, Sidecar, wait_until

FACTS = ("支付接口失败后重试三次", "周末和小李去吃了重庆火锅", "国庆节去黄山爬山", "Deploys happen on Fridays")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def facts(*texts: str) -> list[dict[str, object]]:
    return [{"type": "memory_fact", "event_id": f"fact-{text}", "payload": {"content": text}} for text in texts]


def test_what_was_just_appended_is_found_by_the_sidecar_and_by_a_command(home: Home) -> None:
    with Sidecar(home) as app:
        app.call("events/appendBatch", events=facts(*FACTS))
        for query, fact in (("重试", FACTS[0]), ("火锅", FACTS[1]), ("爬山", FACTS[2]), ("friday deploy", FACTS[3])):
            hits = app.call("recall/search", query=query, limit=5)["hits"]
            assert hits[0]["text"] == fact
            assert hits[0]["pointer"]["eventId"] == hits[0]["eventId"]
        home.json("events", "append", json.dumps(facts("买了榴莲")[0]))  # another process, while a sidecar runs
        assert app.call("recall/search", query="榴莲")["hits"][0]["text"] == "买了榴莲"
        assert home.json("search", "榴莲")["hits"][0]["text"] == "买了榴莲"
        app.call("events/forget", eventIds=["fact-买了榴莲"])
        assert app.call("recall/search", query="榴莲")["hits"] == []
    assert home.json("search", "火锅", "--limit", "1")["hits"][0]["text"] == FACTS[1]
    assert FACTS[1] in home.run("search", "火锅").stdout


def test_days_and_oddly_named_folders_are_found(home: Home) -> None:
    project = home.folder / "app"
    home.run("update", "买了榴莲", "好的", "--project", os.path.relpath(project, REPOSITORY))
    (hit,) = home.json("search", "榴莲", "--kind", "exchange", "--project", str(project), "--limit", "1")["hits"]
    for bound in ("--since", "--until"):
        assert home.json("search", "榴莲", bound, hit["date"])["hits"]
    matches = home.json("forget", "--query", "榴莲", "--since", hit["date"], "--until", hit["date"])["found"]
    assert matches == home.json("forget", "--query", "榴莲")["found"] > 0


def test_a_command_indexes_if_no_sidecar_runs(home: Home) -> None:
    home.json("events", "append-batch", json.dumps(facts(*FACTS)))
    assert home.json("search", "火锅")["hits"][0]["text"] == FACTS[1]
    assert "没有找到" in home.run("search", "直升机").stdout


def test_a_context_fits_the_message_or_is_empty(home: Home) -> None:
    with Sidecar(home) as app:
        app.call("memory/update", userMessage="我们的部署脚本放在 scripts/deploy.sh", aiResponse="记下了")
        app.call("events/appendBatch", events=facts(*FACTS))
        context = app.call("recall/context", query="部署脚本在哪里？")["context"]
        assert "scripts/deploy.sh" in context
        assert app.call("recall/context", query="今天天气怎么样")["context"] == ""
        turns = ["我们来看部署脚本"]
        assert "scripts/deploy.sh" in app.call("recall/context", query="继续", turns=turns)["context"]
        assert "scripts/deploy.sh" in home.run("search", "部署脚本在哪里？", "--context").stdout


def test_wrong_params_are_named(home: Home) -> None:
    with Sidecar(home) as app:
        for params, field in (({"query": ""}, "query"), ({"query": "x", "since": "soon"}, "since")):
            with pytest.raises(CallFailed) as refused:
                app.call("recall/search", **params)
            assert refused.value.code == -32602
            assert field in str(refused.value)


def test_a_manual_edit_is_found_too(home: Home) -> None:
    with Sidecar(home) as app:
        loaded = app.call("memory/load", waitMs=0)
        document = loaded["document"].replace("### 工作习惯\n", "### 工作习惯\n- 上午不排会议\n", 1)
        app.call("memory/save", document=document, baseSha256=loaded["documentSha256"])

        def found() -> bool:
            return bool(app.call("recall/search", query="会议", kinds=["entry"])["hits"])

        wait_until(found)


def test_with_the_extra_a_paraphrase_is_found_and_without_it_the_answer_says_so(tmp_path: Path) -> None:
    query = "登高望远"  # which shares no word with any of the facts
    with Sidecar(Home(tmp_path / "without")) as app:
        app.call("events/appendBatch", events=facts(*FACTS))
        answer = app.call("recall/search", query=query)
        assert (answer["hits"], answer["semantic"]) == ([], "off")
    home = Home(tmp_path / "with", RECALL__EMBEDDINGS="auto")
    with Sidecar(home) as app:
        app.call("events/appendBatch", events=facts(*FACTS))
        wait_until(lambda: app.call("recall/search", query=query)["semantic"] == "used", timeout=120.0)
        best = app.call("recall/search", query=query)["hits"][0]
        assert (best["text"], best["parts"]["semantic"]) == (FACTS[2], 1.0)
        app.call("events/forget", eventIds=[f"fact-{FACTS[2]}"])
        assert FACTS[2] not in [hit["text"] for hit in app.call("recall/search", query=query)["hits"]]
        told = app.call("recall/search", query="爬山", weights={"keyword": 1, "semantic": 0})
        assert told["semantic"] == "off"
    weighed = Home(tmp_path / "with", RECALL__EMBEDDINGS="auto", RECALL__WEIGHTS__SEMANTIC="0")
    assert weighed.json("search", query) == {**answer, "hits": []}
    assert home.json("search", "boiling a kettle")["semantic"] == "off", "a command loads no models"
    with Sidecar(home) as app:
        app.call("memory/load")
        wait_until(lambda: home.json("search", "boiling a kettle")["semantic"] == "used")
