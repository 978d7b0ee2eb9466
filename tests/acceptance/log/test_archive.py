"""`export` and `import` for users: another machine, another AI."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.acceptance.environment import wait_for_lines
from tests.chat_export_samples import CLAUDE
from tests.sidecar import CallFailed, Home, Sidecar, wait_until

MEMORY = """\
# AI 对话记忆

## 用户偏好

### 工作习惯
- 喜欢简洁的代码

## 重要对话记录

### 2026/1/7
- 用户问：怎么优化启动速度
- AI 答：减少启动屏延迟
- 一句别的话
"""
PAGE = """\
# 2026-01-29 对话记忆

## Session 1 - 10:30:45

### 主题
缓存策略
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def test_a_memory_moves_to_another_machine_in_one_encrypted_file(home: Home, tmp_path: Path) -> None:
    home.run("update", "帮我打开自动更新", "已经打开")
    home.run("update", "周末去哪里", "去爬山")
    path, secret = tmp_path / "all.xbm", tmp_path / "passphrase"
    secret.write_text("一个足够长的口令\n", "utf-8")
    export = home.json("export", str(path), "--passphrase-file", str(secret))
    assert (export["events"], export["sealed"]) == (2, True)
    assert home.run("export", str(path), check=False).returncode == 2

    there = Home(tmp_path / "b", device="device-b")
    wrong = there.run("import", str(path), "--passphrase-file", "-", stdin="not this one\n", check=False)
    assert wrong.returncode == 2
    assert "口令" in wrong.stderr
    imported = there.json("import", "--mine", str(path), "--passphrase-file", str(secret))

    assert (imported["recorded"], imported["refused"]) == (2, 0)
    wait_for_lines(there, "帮我打开自动更新")
    wait_for_lines(there, "去爬山")
    assert (
        there.file.read_text("utf-8").partition("**最后更新**")[0]
        == home.file.read_text("utf-8").partition("**最后更新**")[0]
    )
    assert there.json("import", str(path), "--passphrase-file", str(secret))["recorded"] == 0


HANDBOOK = """\
---
tags: [厨房]
---
# 我的厨房手册

### 刀具
- 菜刀每月磨一次\x20\x20
  用 1000 目

### 锅具
1. 铁锅开锅
2. 砂锅养护

| 物品 | 位置 |
|---|---|
| 盐 | 左柜 |

> 引用一行

"""


@pytest.mark.parametrize("flags", [[], ["--mine"]], ids=["imported", "mine"])
@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_an_empty_home_gets_the_document_and_its_versions_byte_for_byte(
    home: Home, tmp_path: Path, flags: list[str], encoding: str
) -> None:
    home.file.write_bytes(HANDBOOK.replace("\n", "\r\n").encode(encoding))
    home.run("update", "我对花生过敏", "记住了")
    home.run("update", "周末去哪里", "去爬山")
    home.file.write_bytes(home.file.read_bytes().replace("左柜".encode(encoding), "右柜".encode(encoding)))
    home.run("update", "帮我打开自动更新", "已经打开")
    before, versions = home.file.read_bytes(), home.json("history")
    path = tmp_path / "all.xbm"
    home.run("export", str(path))

    there = Home(tmp_path / "b", device="device-b")
    there.run("import", *flags, str(path))

    assert there.file.read_bytes() == before
    assert there.json("history") == versions
    with Sidecar(there) as sidecar:
        sidecar.call("sync/status")
        assert sidecar.load()["document"].encode(encoding).removeprefix("\ufeff".encode()) == before
        assert flags or "【导入】" in sidecar.load()["content"]
        assert there.file.read_bytes() == before
        sidecar.update("新电脑上的第一句")
        wait_until(lambda: "新电脑上的第一句".encode(encoding) in there.file.read_bytes())
    after = there.file.read_bytes().decode(encoding)
    assert after.startswith(before.decode(encoding).partition("## 重要对话记录")[0])
    assert after.count("周末去哪里") == 1
    there.run("import", *flags, str(path))
    assert there.file.read_bytes().decode(encoding).count("周末去哪里") == 1


@pytest.mark.parametrize("verb", [["export", "--encrypt"], ["import", "--encrypted"]], ids=lambda verb: verb[0])
def test_without_a_terminal_the_error_names_the_passphrase_option(home: Home, tmp_path: Path, verb: list[str]) -> None:
    path = tmp_path / "all.xbm"

    refused = home.run(*verb, str(path), stdin="correct horse\ncorrect horse\n", check=False)

    assert (refused.returncode, refused.stdout, path.exists()) == (2, "", False)
    assert refused.stderr.startswith("错误：")
    assert "--passphrase-file" in refused.stderr


def test_a_passphrase_is_what_is_typed_whatever_mark_its_file_begins_with(home: Home, tmp_path: Path) -> None:
    path, secret = tmp_path / "all.xbm", tmp_path / "passphrase"
    secret.write_text("correct horse\n", "utf-8-sig")
    home.run("export", str(path), "--passphrase-file", str(secret))
    assert home.json("import", str(path), "--passphrase-file", "-", stdin="correct horse\n")["refused"] == 0

    earlier = tmp_path / "earlier.xbm"
    secret.write_text("\ufeffcorrect horse\n", "utf-8-sig")  # of the two marks one is read as part of the passphrase
    home.run("export", str(earlier), "--passphrase-file", str(secret))
    for given in ("correct horse", "\ufeffcorrect horse"):
        assert home.json("import", str(earlier), "--passphrase-file", "-", stdin=f"{given}\n")["refused"] == 0

    secret.write_bytes("口令".encode("gbk"))
    refused = home.run("import", str(path), "--passphrase-file", str(secret), check=False)
    assert (refused.returncode, "无法读取" in refused.stderr) == (2, True)


def test_the_settings_in_an_archive_hold_no_secret(home: Home, tmp_path: Path) -> None:
    secret, path = "hunter2pass", tmp_path / "all.xbm"
    home.settings |= {
        "REDACTION__PATTERNS": json.dumps([secret, "另一个"]),
        "RECALL__EMBEDDINGS_URL": f"https://me:{secret}@example.com/v1",
    }
    home.run("export", str(path))

    with tarfile.open(path) as packed:
        file = packed.extractfile("settings.json")
        assert file is not None
        text = file.read().decode()
    assert secret not in text
    answer = json.loads(text)
    assert answer["redaction"]["patterns"] == 2
    assert answer["recall"]["embeddings_url"] == "https://**********@example.com/v1"


def test_a_memory_file_and_daily_pages_are_imported_beside_a_running_sidecar(home: Home, tmp_path: Path) -> None:
    memory, pages = tmp_path / "theirs.md", tmp_path / "pages"
    memory.write_text(MEMORY, "utf-8")
    pages.mkdir()
    (pages / "2026-01-29.md").write_text(PAGE, "utf-8")
    with Sidecar(home) as sidecar:
        sidecar.update("这里的问题")
        assert home.json("import", str(memory), "--dry-run")["recorded"] == 3
        assert home.json("import", str(memory))["recorded"] == 3
        assert home.json("import", str(pages))["recorded"] == 1
        wait_for_lines(home, "- 喜欢简洁的代码", "怎么优化启动速度", "- 一句别的话", "这里的问题")
        (hit, *_) = sidecar.call("recall/search", query="启动速度")["hits"]
        assert (hit["date"][:10], hit["origin"]) == ("2026-01-07", "imported")
        day = home.data / ".cursor" / "skills" / "memories" / "daily" / "2026-01-29.md"
        wait_until(lambda: day.exists() and "缓存策略" in day.read_text("utf-8"))
    assert home.json("import", str(memory))["recorded"] == 0
    assert home.json("import", str(pages))["recorded"] == 0
    assert home.json("import", str(day.parent))["recorded"] == 0


def test_conversations_of_another_ai_are_found_and_leave_the_document_alone(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CLAUDE), "utf-8")
    with Sidecar(home) as sidecar:
        assert sidecar.call("archive/import", path=str(path), dryRun=True)["recorded"] == 4
        imported = sidecar.call("archive/import", path=str(path))
        assert (imported["source"], imported["conversations"], imported["recorded"]) == ("claude", 1, 4)
        (hit, *_) = sidecar.call("recall/search", query="爬山")["hits"]
        assert "爬山" in hit["text"]
        assert (hit["date"][:10], hit["origin"]) == ("2024-05-01", "imported")
        assert "爬山" not in sidecar.load(scope="device")["document"]
        with pytest.raises(CallFailed, match="absolute"):
            sidecar.call("archive/import", path="relative.json")


def test_pasted_text_of_another_assistant_waits_in_the_review(home: Home, tmp_path: Path) -> None:
    (path := tmp_path / "pasted.txt").write_text("[2025-11-03] - Lives in Kiel\n- 对花生过敏\n", "utf-8")
    assert home.json("import", "--paste", str(path))["recorded"] == 2
    with Sidecar(home) as sidecar:
        done = sidecar.call("archive/paste", text="- Likes tea\n- 对花生过敏\n")
        assert (done["source"], done["recorded"], done["known"]) == ("pasted", 1, 1)
        waiting = [fact["statement"] for fact in sidecar.call("understanding/review")["facts"]]
        assert waiting == ["Lives in Kiel", "对花生过敏", "Likes tea"]
        with pytest.raises(CallFailed, match="2001 lines"):
            sidecar.call("archive/paste", text="x\n" * 2_001)


def test_transcripts_of_a_coding_agent_are_taken_from_its_folder_once(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "2026"
    folder.mkdir(parents=True)
    payloads = [
        ("session_meta", {"id": "c-1", "source": "cli"}),
        ("event_msg", {"type": "user_message", "message": "How hot is the kiln?"}),
        ("response_item", {"type": "function_call_output", "output": "950"}),
        (
            "response_item",
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hot"}]},
        ),
    ]
    named = [{"timestamp": "2026-01-01T10:00:00Z", "type": kind, "payload": payload} for kind, payload in payloads]
    (folder / "rollout-1.jsonl").write_text("\n".join(map(json.dumps, named)), "utf-8")

    taken = home.json("import", "--from", "codex", str(tmp_path))

    assert (taken["source"], taken["conversations"], taken["recorded"]) == ("codex", 1, 3)
    assert taken["skipped"] == [{"kind": "tools", "count": 1}]
    (hit, *_) = home.json("search", "kiln")["hits"]
    assert (hit["origin"], hit["author"], hit["date"][:10]) == ("imported", "file", "2026-01-01")
    assert home.json("import", "--from", "codex", str(tmp_path))["recorded"] == 0
