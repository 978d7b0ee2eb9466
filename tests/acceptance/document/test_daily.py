"""Daily records as a person meets them: from the shell, over stdio, and in the files."""

import json
from pathlib import Path

import pytest

from tests.sidecar import CallFailed, Home, Sidecar, wait_until

SAID = ("我们来设计记忆功能", "我决定端口用 8080", "就这样")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def pages(home: Home) -> list[Path]:
    return sorted((home.data / ".cursor" / "skills" / "memories" / "daily").glob("*.md"))


def test_every_command_of_the_seed_from_the_shell_in_both_languages(home: Home) -> None:
    def say(text: str) -> dict[str, object]:
        answer: dict[str, object] = home.json("remember", text, "--session-id", session)
        return answer

    chinese = "火锅店在湖边", "记住这个", "搜索记忆: 火锅店", "查看今日记忆", "删除记忆: 火锅店", " 确认"
    english = "The hot pot place is by the lake", "save this", "search memory: hot pot", "today's memory"
    for told, save, search, today, delete, confirm, clean, settings, skip in (
        (*chinese, "清理旧记忆", "记忆设置", "不要保存"),
        (*english, "delete memory: hot pot", " confirm", "clean up old memories", "memory settings", "don't save"),
    ):
        session = told
        home.run("update", "--session-id", session, told, "好")
        assert say(save)["done"]
        assert len(pages(home)) == 1
        assert say(search)["done"]
        assert "##" in str(say(today)["page"])
        assert not say(delete)["done"], "it asks first"
        assert say(delete + confirm)["done"]
        assert not say(search)["done"]
        assert say(clean)["command"] == "clean"
        assert "recording" in json.dumps(say(settings))
        assert "recording.auto_save = true\n" in home.run("remember", settings).stdout, "as it can be said"
        assert say(skip)["done"]
    assert say("随便说说")["command"] is None
    assert say("上次说到哪了")["recall"]


def test_from_the_shell_a_record_is_added_edited_marked_removed_and_brought_back(home: Home) -> None:
    added = home.json("daily", "add", "题目", "--fact", "事实", "--tag", "标签")["record"]
    assert pages(home)[0].read_text("utf-8").count("## Session") == 1
    assert home.json("daily", "edit", added["id"], "--topic", "新题目")["record"]["topic"] == "新题目"
    assert home.json("daily", "mark", added["id"], "important")["record"]["marks"] == ["important"]
    assert "重要" in pages(home)[0].read_text("utf-8")
    home.run("daily", "remove", added["id"])
    assert pages(home) == []
    assert home.json("daily", "undo")["record"]["topic"] == "新题目"
    assert "新题目" in home.run("daily", "show").stdout
    assert home.json("daily", "status")["records"] == 1
    assert home.json("daily", "config", "recording.auto_save", "false")["options"]["recording"]["auto_save"] is False
    refused = home.run("daily", "config", "storage.retention_days=abc", check=False).stderr
    assert "storage.retention_days" in refused
    assert "recording.auto_save" not in refused, "the option exists; its value is wrong"
    config = json.loads((home.data / ".cursor" / "skills" / "memories" / "config.json").read_text("utf-8"))
    assert config == {"recording": {"auto_save": False}}
    assert home.json("daily", "review")["questions"] == []
    assert home.json("daily", "merge")["folds"] == []
    assert home.json("daily", "clean")["records"] == []
    unknown = home.run("daily", "record", "nope", check=False)
    assert (unknown.returncode, "提示：" in unknown.stderr) == (1, True)


def test_the_vectors_of_real_models_are_exported_and_what_is_forgotten_leaves_the_file(tmp_path: Path) -> None:
    home = Home(tmp_path, RECALL__EMBEDDINGS="local")
    path = home.data / ".cursor" / "skills" / "memories" / "index" / "embeddings.json"

    def topics() -> list[str]:
        page = json.loads(path.read_text("utf-8")) if path.exists() else {"entries": []}
        assert all(len(entry["embedding"]) > 100 for entry in page["entries"])
        return [entry["text"] for entry in page["entries"]]

    with Sidecar(home) as sidecar:
        sidecar.call("daily/add", summary={"topic": "去黄山爬山"})
        secret = sidecar.call("daily/add", summary={"topic": "秘密的计划"})["record"]
        wait_until(lambda: topics() == ["去黄山爬山", "秘密的计划"], timeout=120.0)
        sidecar.call("daily/mark", id=secret["id"], mark="sensitive")
        assert "秘密的计划" not in topics()
        wait_until(lambda: topics() == ["去黄山爬山"], timeout=120.0)
    off = Home(tmp_path, RECALL__EMBEDDINGS="off")
    off.run("daily", "list")
    assert not path.exists()


def test_a_session_that_ends_in_the_sidecar_is_on_its_project_s_page(home: Home) -> None:
    project = home.folder / "项目"
    project.mkdir()
    with Sidecar(home) as sidecar:
        for text in SAID:  # the very first words of this memory
            sidecar.call(
                "memory/update", userMessage=text, aiResponse="好的。", sessionId="s1", projectPath=str(project)
            )
        sidecar.call("events/append", event={"type": "session_ended", "session_id": "s1"})
        folder = project / ".cursor" / "skills" / "memories"
        (page,) = wait_until(lambda: list((folder / "daily").glob("*.md")))
        assert "8080" in page.read_text("utf-8")
        (record,) = sidecar.call("daily/list")["records"]
        assert (record["sessionId"], record["session"], record["author"]) == ("s1", 1, "extractive")
        page.write_text(page.read_text("utf-8").replace("8080", "9090"), "utf-8")
        told = sidecar.call("daily/show")
        assert "9090" in told["text"], "what a hand has just saved is seen"
        sidecar.call("daily/undo")
        assert "8080" in page.read_text("utf-8")
        with pytest.raises(CallFailed) as refused:
            sidecar.call("daily/remove", id="rec_nothing")
        assert refused.value.kind == "invalid_input"


def test_code_is_on_the_page_by_default_and_stays_on_this_device_through_every_change(home: Home) -> None:
    said = (
        ("写个快速排序", "好的：\n```python\ndef qs(a):\n    return a\n```\n这样就行"),
        ("那就番茄锅底，周六晚上六点去", "好的，记下了。"),
        (f"部署的步骤很长：{'先备份，再停机，' * 8}最后检查端口 8443", "明白。"),
    )
    for question, answer in said:
        home.run("update", "--session-id", "s1", question, answer)
    record = home.json("daily", "record", "s1")["record"]
    page = pages(home)[0].read_text("utf-8")
    assert "### 代码/配置\n```python\ndef qs(a):\n    return a\n```" in page
    assert "- 那就番茄锅底，周六晚上六点去" in page
    assert "端口 8443" in page

    home.run("daily", "mark", record["id"], "important")
    pages(home)[0].write_text(page.replace("番茄锅底", "菌菇锅底"), "utf-8")
    home.json("daily", "list")
    home.run("update", "--session-id", "s1", "再改一下", "好的：\n```sh\nmake deploy\n```")
    assert "def qs" in pages(home)[0].read_text("utf-8")

    events = home.json("events", "read", json.dumps({"limit": 500}))["events"]
    leaving = [event for event in events if event["type"] in {"session_recorded", "session_edited", "session_marked"}]
    assert {event["type"] for event in leaving} == {"session_recorded", "session_edited", "session_marked"}
    assert "菌菇锅底" in json.dumps(leaving, ensure_ascii=False), "what a person writes on the page is shared"
    assert not [text for text in ("def qs", "8443") if text in json.dumps(leaving, ensure_ascii=False)]

    exchange = next(event for event in events if event["payload"].get("question") == "写个快速排序")
    home.run("forget", exchange["event_id"], "--yes")
    home.json("daily", "list")
    assert "def qs" not in pages(home)[0].read_text("utf-8"), "nor does its code stay on the page"


def test_commands_alone_keep_a_session_when_it_ends(home: Home) -> None:
    home.settings["PRIVACY__STORE_MESSAGES"] = "true"
    place = {"session_id": "s1", "project_path": str(home.data)}
    for text in SAID:
        message = {"type": "message", **place, "payload": {"role": "user", "content": text}}
        home.json("events", "append", json.dumps(message))
    assert pages(home) == []
    home.json("events", "append", json.dumps({"type": "session_finalized", **place}))
    assert "8080" in pages(home)[0].read_text("utf-8")
    assert [record["sessionId"] for record in home.json("daily", "list")["records"]] == ["s1"]
