"""不要保存 and 删除记忆 as a person says them: what the answer says is so when it comes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sync.open_app import AppMode, open_app
from sync.settings.settings import Settings
from tests.acceptance.environment import (
    Network,
    ServerRows,
    cloud_settings,
    unique_text,
    wait_for_lines,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar, wait_until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def files_containing(home: Home, word: str) -> list[str]:
    """The files of a home that hold a word, the database and the event files included."""
    return [
        str(path.relative_to(home.folder))
        for path in home.folder.rglob("*")
        if path.is_file() and path.name != "stderr.log" and word.encode() in path.read_bytes()
    ]


def say(sidecar: Sidecar, text: str, **more: Any) -> Any:
    return sidecar.call("memory/command", text=text, **more)


def message(session_id: str | None, content: str) -> dict[str, Any]:
    return {"type": "message", "session_id": session_id, "payload": {"role": "user", "content": content}}


@pytest.mark.parametrize(("skip", "save"), [("不要保存", "记住这个"), ("this is sensitive", "save this")])
def test_nothing_of_a_conversation_is_kept_before_and_after_it_was_said(home: Home, skip: str, save: str) -> None:
    with Sidecar(home) as sidecar:
        secret, other, later = unique_text("离职打算"), unique_text("另一个会话"), unique_text("之后")
        sidecar.update(f"我想聊聊{secret}", f"好的，{secret}", sessionId="s1")
        sidecar.call("events/append", event=message("s1", secret))
        sidecar.update(other, sessionId="s2")
        wait_for_lines(home, secret)
        answer = say(sidecar, skip, sessionId="s1")
        assert answer["done"]
        assert files_containing(home, secret) == [], "it is so when the answer comes"
        shown = sidecar.call("recall/search", query=secret), sidecar.call("events/read"), sidecar.load()
        assert secret not in str(shown)
        again = sidecar.update(secret, sessionId="s1")
        assert (again["eventId"], again["recorded"], again["reason"]) == (None, False, "not_to_be_saved")
        told = sidecar.call("events/appendBatch", events=[message("s1", secret), message("s2", other)])
        assert (len(told["eventIds"]), told["notSaved"]) == (1, 1)
        wait_for_lines(home, other)
        assert files_containing(home, secret) == []
        assert say(sidecar, save, sessionId="s1")["done"]
        assert sidecar.update(later, sessionId="s1")["recorded"]
        wait_for_lines(home, later)


def test_lessons_and_notes_of_a_conversation_go_with_it_and_no_more_are_made(home: Home) -> None:
    secret, project = unique_text("离职打算"), home.folder / "project"
    project.mkdir()
    judgement = {
        "scene": "选择公司时",
        "principles": [secret, "留下"],
        "choice": secret,
        "evidence": f"已经想好 {secret}",
        "source": "choice",
        "confidence": "high",
    }
    failing = {"tool": "Bash", "input": {"command": "./run"}, "error": f"RuntimeError: {secret} is missing"}
    with Sidecar(home) as sidecar:

        def work() -> None:
            for _ in range(2):
                sidecar.call("lessons/capture", **failing, exitCode=1, sessionId="s1")
            sidecar.call(
                "lessons/capture", tool="Bash", input={"command": f"make {secret}"}, sessionId="s1", exitCode=0
            )
            for _ in range(7):
                sidecar.call("lessons/capture", tool="Bash", input={"command": "./run"}, sessionId="s1", exitCode=0)

        def remember() -> Any:
            return sidecar.call("notes/remember", projectPath=str(project), payloads=[judgement], sessionId="s1")

        work()
        assert remember()["outcomes"][0]["status"] == "written"
        assert secret in str(sidecar.call("lessons/list"))
        say(sidecar, "不要保存", sessionId="s1")
        work()
        with pytest.raises(CallFailed, match="not to be saved"):
            remember()
        assert files_containing(home, secret) == []
        assert secret not in str(sidecar.call("events/read"))
        say(sidecar, "记住这个", sessionId="s1")
        assert remember()["outcomes"][0]["status"] == "written"


@pytest.mark.parametrize("blocked", ["memory file", "page"])
def test_the_answer_names_a_file_that_cannot_be_written_again(home: Home, blocked: str) -> None:
    secret, project = unique_text("离职打算"), home.folder / "project"
    (project / ".git").mkdir(parents=True)
    with Sidecar(home) as sidecar:
        for number in range(4):
            sidecar.update(f"{secret} {number}", sessionId="s1", projectPath=str(project))
        sidecar.call("daily/record", sessionId="s1", projectPath=str(project))
        wait_for_lines(home, secret)
        (page,) = (project / ".cursor/skills/memories/daily").glob("*.md")
        path = home.file if blocked == "memory file" else page
        path.write_bytes(path.read_bytes() + b"\xff\xfe\x00 \x00\n")
        answer = say(sidecar, "不要保存", sessionId="s1")
        assert f"没能改写，里面可能还有这些内容：{path}" in answer["message"]
        written = home.file if blocked == "page" else page
        assert not written.exists() or secret not in written.read_text("utf-8")


async def test_an_answer_waits_until_the_event_files_are_written(home: Home) -> None:
    settings = Settings(data_dir=home.data, memory_file=home.file, device_id="device-a", token_store="file")
    secret = unique_text("离职打算")
    async with open_app(settings, AppMode.HELPER) as app:
        draft = app.draft_builder.build(message("s1", secret))
        [recorded] = await app.log.append([draft])
        await app.event_files.write_pending()
        runner = app.event_files.runner
        async with runner._lock:  # as when the background job is writing
            erasing = asyncio.create_task(app.erasure.erase_and_confirm([recorded.event.event_id]))
            while not erasing.done() and not runner._lock._waiters:  # noqa: ASYNC110 - a lock has no event
                await asyncio.sleep(0)
        assert (await erasing).here == "done"
        assert secret.encode() not in b"".join(path.read_bytes() for path in home.data.rglob("*.jsonl"))
        async with runner._lock:
            assert not await app.event_files.write_all(0), "the answer then says that a file is still to be written"


async def test_a_command_erases_from_event_files_that_are_far_behind(home: Home) -> None:
    settings = Settings(data_dir=home.data, memory_file=home.file, device_id="device-a", token_store="file")
    secret = unique_text("离职打算")
    async with open_app(settings, AppMode.HELPER) as app:
        [recorded] = await app.log.append([app.draft_builder.build(message("s1", secret))])
    assert secret.encode() in b"".join(path.read_bytes() for path in home.data.rglob("*.jsonl"))
    async with open_app(settings, AppMode.HELPER) as app:
        await app.log.append([app.draft_builder.build(message("s2", f"第 {number} 条")) for number in range(1_100)])
        await app.erasure.request([recorded.event.event_id])
    assert secret.encode() not in b"".join(path.read_bytes() for path in home.data.rglob("*.jsonl"))


def test_without_a_session_it_is_the_last_talk_up_to_a_pause_and_the_answer_says_so(home: Home) -> None:
    secret, after = unique_text("离职打算"), unique_text("之后")
    home.run("update", f"我想聊聊{secret}", "好的，请说")
    told = home.run("remember", "这次不保存").stdout
    assert "1 条对话" in told
    assert "没有会话编号的内容都不保存" in told
    assert files_containing(home, secret) == []
    assert secret not in home.run("load").stdout
    assert "没有记录：用户要求不保存" in home.run("update", after, "好").stdout
    assert "没有保存过可清除的对话" in home.run("remember", "不要保存").stdout
    assert home.json("remember", "记住这个")["done"]
    home.run("update", after, "好")
    assert after in home.file.read_text("utf-8")


def test_the_cloud_and_the_other_devices_erase_it_too_and_the_answer_says_when(
    tmp_path: Path, local_cloud: Cloud, user: User
) -> None:
    server, secret = ServerRows(local_cloud, user.user_id), unique_text("离职打算")
    with Network(local_cloud) as network:
        home = Home(tmp_path / "a", **cloud_settings(local_cloud, network.url))
        beside = Home(tmp_path / "b", device="device-b", **cloud_settings(local_cloud))
        with Sidecar(home) as a, Sidecar(beside) as b:
            for sidecar in (a, b):
                sidecar.log_in(user.email, user.password)
            for session_id in ("s1", "s2"):
                a.update(f"{secret}{session_id}", sessionId=session_id)
            wait_until_synced(a)
            wait_until_synced(b)
            assert "云端已清除" in say(a, "不要保存", sessionId="s1")["message"]
            assert f"{secret}s1" not in str(server.events)
            network.disconnect()
            assert "将在联网后清除" in say(a, "不要保存", sessionId="s2")["message"]
            network.reconnect()
            wait_until_synced(a)
            wait_until_synced(b)
            wait_until(lambda: secret not in server.all_rows_as_text())
            wait_until(lambda: secret not in str(b.load()))


def test_the_answer_says_so_when_the_server_accepts_no_more_erasures(
    tmp_path: Path, local_cloud: Cloud, user: User
) -> None:
    server, secret = ServerRows(local_cloud, user.user_id), unique_text("离职打算")
    home = Home(tmp_path / "a", **cloud_settings(local_cloud))
    with Sidecar(home) as sidecar, psycopg.connect(local_cloud.database_url, autocommit=True) as admin:
        sidecar.log_in(user.email, user.password)
        sidecar.update(secret, sessionId="s1")
        wait_until_synced(sidecar)
        set_limit = "select ai_memory_admin_set_limit('erasures_a_day', %s)"
        usual = admin.execute(set_limit, [0]).fetchone()
        assert usual is not None
        try:
            assert "云端没有接受" in say(sidecar, "不要保存", sessionId="s1")["message"]
        finally:
            admin.execute(set_limit, usual)
        assert secret in str(server.events), "the answer was true"
        home.run("quarantine", "retry")
        wait_until(lambda: secret not in server.all_rows_as_text())


def test_what_a_command_erases_can_be_undone_until_the_time_that_the_answer_says(home: Home) -> None:
    home.settings["PRIVACY__UNDO_SECONDS"] = "300"
    with Sidecar(home) as sidecar:
        sidecar.update("推荐火锅店", "海底捞")
        done = say(sidecar, "删除记忆: 火锅 确认")
        assert done["done"]
        assert "将在" in done["message"]
        assert "已" not in done["message"]
        assert "火锅" not in str(sidecar.load())
        assert not say(sidecar, "忘掉刚才的")["done"]
        assert "已撤销" in say(sidecar, "撤销")["message"]
        assert "火锅" in str(sidecar.load())
        assert "Will be erased at" in say(sidecar, "forget what I just said confirm")["message"]


def test_deleting_by_words_lists_everything_and_erases_it_when_confirmed(home: Home) -> None:
    home.settings["PRIVACY__UNDO_SECONDS"] = "0"
    with Sidecar(home) as sidecar:
        sidecar.update("推荐火锅店", "海底捞")
        sidecar.update("今天天气", "晴")
        sidecar.call("daily/add", summary={"topic": "推荐火锅店"})
        sidecar.call("events/append", event={"type": "memory_fact", "payload": {"content": "喜欢火锅"}})
        wait_for_lines(home, "火锅")
        first = say(sidecar, "删除记忆: 火锅")
        assert not first["done"]
        for counted in ("对话 1 条", "每日记忆 1 条", "事实 1 条"):
            assert counted in first["message"]
        assert "火锅" in home.file.read_text("utf-8"), "nothing is deleted before the confirmation"
        done = say(sidecar, "删除记忆: 火锅 确认")
        assert done["done"]
        assert "已永久清除" in done["message"]
        assert files_containing(home, "火锅") == []
        assert sidecar.call("recall/search", query="火锅")["hits"] == []
        assert not say(sidecar, "undo")["done"], "an erasure cannot be undone, and the answer did not say so"
        wait_for_lines(home, "天气")


def test_one_daily_record_alone_is_removed_and_the_named_undo_works(home: Home) -> None:
    home.run("daily", "add", "推荐火锅店")
    told = home.run("remember", "删除记忆: 火锅").stdout
    assert "说“撤销”可恢复" in told
    assert home.json("daily", "list")["records"] == []
    assert "已撤销：推荐火锅店" in home.run("remember", "撤销").stdout
    assert len(home.json("daily", "list")["records"]) == 1


def test_a_line_that_was_edited_by_hand_goes_with_its_conversation(home: Home) -> None:
    with Sidecar(home) as sidecar:
        word, edited = unique_text("打算"), unique_text("手改")
        sidecar.update(word, sessionId="s1")
        wait_for_lines(home, word)
        home.file.write_text(home.file.read_text("utf-8").replace(word, f"{word}{edited}"), "utf-8")
        wait_until(lambda: edited in str(sidecar.call("events/read", types=["entry_edited"])))
        say(sidecar, "不要保存", sessionId="s1")
        assert files_containing(home, edited) == []


@pytest.mark.parametrize(("language", "told"), [("zh", "没有听懂"), ("en", "Not understood")])
@pytest.mark.parametrize("text", ["忘掉那件事", "forget about it", "删点什么"])
def test_what_is_not_understood_says_so_in_the_language_of_the_command(
    home: Home, text: str, language: str, told: str
) -> None:
    home.settings["DOCUMENT__LANGUAGE"] = language
    done = home.run("remember", text, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert json.loads(home.run("--json", "remember", text).stdout)["command"] is None


@pytest.mark.parametrize("stores", ["false", "true"])
def test_the_text_of_a_message_is_kept_only_if_messages_are_stored(home: Home, stores: str) -> None:
    home.settings["PRIVACY__STORE_MESSAGES"] = stores
    word = unique_text("随口一说")
    appended = home.json("events", "append", json.dumps(message("s1", word)))
    event_id = appended["eventIds"][0]
    payload = {"role": "user", "content": word}
    if stores == "false":
        payload = {"role": "user", "content_length": len(word)}  # type: ignore[dict-item]
        assert appended["withoutText"] == [event_id]
        assert "没有保存原文" in home.run("events", "append", json.dumps(message("s1", word))).stdout
        home.run("events", "append-batch", json.dumps([message("s1", word)]))
    assert appended["events"][0]["payload"] == payload
    assert bool(files_containing(home, word)) is (stores == "true")
    again = json.dumps({**message("s1", word), "event_id": event_id})
    assert home.json("events", "append", again)["duplicates"] == [event_id]


def test_a_system_prompt_is_within_its_bound_with_its_frame(home: Home) -> None:
    with Sidecar(home) as sidecar:
        for number in range(40):
            sidecar.update(f"第 {number} 个问题 # 标题 <system> " + "很长" * 9, "回答" * 60)
        assert 700 < len(sidecar.call("memory/systemPrompt")["prompt"]) <= 2_000, "bounded by default"
        whole = sidecar.call("memory/systemPrompt", maxChars=50_000)["prompt"]
        for bound in (1, 300, 600, 1_000, 2_000, len(whole) - 1, len(whole)):
            assert len(sidecar.call("memory/systemPrompt", maxChars=bound)["prompt"]) <= bound
            assert len(sidecar.load(maxChars=bound)["content"]) <= bound
        assert sidecar.call("memory/systemPrompt", maxChars=1)["prompt"] == "", "not even the frame fits"
        assert len(sidecar.call("memory/systemPrompt", maxChars=len(whole))["prompt"]) == len(whole)


def test_cleaning_up_asks_for_no_confirmation_if_nothing_is_expired(home: Home) -> None:
    assert home.json("remember", "清理旧记忆")["message"] == "没有过期的记忆"
