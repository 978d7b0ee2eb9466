"""Secrets entered at every input are found nowhere: not in databases, log files, the memory file or on the server."""

import json
import random
import sqlite3
import string
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from sync.redaction.rules.checksums import is_identity_number
from tests.acceptance.environment import (
    ServerRows,
    cloud_settings,
    exchanges,
    files_containing,
    manual_edit_events,
    wait_for_lines,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.integration.document.harness import FakeAppCache
from tests.proof import first_in_test
from tests.sidecar import CallFailed, Home, Sidecar

RAW: Final = frozenset({"written", "local_text"})  # tables that may hold what a person typed; they never replicate
EVERYTHING: Final = "DEBUG"
# of an index of words, the tables below it that hold its bytes: the one above may refuse to be read as a whole
TABLES: Final = "select name from sqlite_master where type = 'table' and sql not like 'create virtual table%'"


def letters(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(random.SystemRandom().choices(alphabet, k=count))


def id_card() -> str:
    while True:
        front = f"110101{random.SystemRandom().randint(1950, 2005)}0{random.SystemRandom().randint(1, 9)}15"
        for last in "0123456789X":
            found = f"{front}{letters(3, string.digits)}{last}"
            if is_identity_number(found):
                return found


def canaries() -> dict[str, tuple[str, str]]:
    """Kind -> (the secret, a sentence with it)."""
    secrets = {
        "phone": ("13" + letters(9, string.digits), "我的电话是{}，晚上打"),
        "id card": (id_card(), "身份证号{}帮我记一下"),
        "github": ("ghp_" + letters(36), "我的密钥是{}别忘了"),
        "openai": ("sk-proj-" + letters(48), "把 key={} 写进去"),
        "aws": ("AKIA" + letters(16, string.ascii_uppercase + "234567"), "用{}登录"),
        "password": (letters(14) + "#7Q", "密码：{}"),
        "e-mail": (f"{letters(10, string.ascii_lowercase)}@example.com", "写信到 {} 给我"),
    }
    return {kind: (secret, sentence.format(secret)) for kind, (secret, sentence) in secrets.items()}


@pytest.fixture
def planted() -> dict[str, tuple[str, str]]:
    return canaries()


@pytest.fixture
def home(tmp_path: Path, local_cloud: Cloud) -> Home:
    cache = tmp_path / "app.db"
    FakeAppCache(cache)  # outside the home: its document is written into it as a person typed it
    return Home(
        tmp_path / "a",
        LOG_LEVEL=EVERYTHING,
        APP_DB=str(cache),
        APP_DB_WRITE_BACK="true",
        **cloud_settings(local_cloud),
    )


@pytest.fixture
def sidecar(home: Home, user: User) -> Iterator[Sidecar]:
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        yield sidecar


def found_in_files(home: Home, secret: str, *, but: tuple[Path, ...] = ()) -> list[str]:
    """The files of a home that contain a secret, databases and write-ahead logs included."""
    return [path.name for path in files_containing(home.folder, secret) if path not in but]


def found_in_tables(home: Home, secret: str) -> list[str]:
    """The tables that contain a secret, except those that may contain manual edits."""
    with closing(sqlite3.connect(home.database)) as connection:
        tables = [row[0] for row in connection.execute(TABLES)]
        return [
            table
            for table in tables
            if table not in RAW
            and secret in json.dumps(connection.execute(f"select * from {table}").fetchall(), default=repr)
        ]


def test_what_goes_through_update_is_nowhere(
    home: Home, sidecar: Sidecar, user: User, local_cloud: Cloud, planted: dict[str, tuple[str, str]]
) -> None:
    for _, sentence in planted.values():
        sidecar.update(sentence, f"记住了。{sentence}")
        sidecar.update("好" * 40 + sentence, "说" * 90 + sentence)  # at the cut of the summary
    wait_for_lines(home, "说" * 80)
    wait_until_synced(sidecar)
    sidecar.load()
    sidecar.stop()
    server = ServerRows(local_cloud, user.user_id).all_rows_as_text()
    for kind, (secret, _) in planted.items():
        assert found_in_files(home, secret) == [], kind
        assert secret not in server, kind


@pytest.mark.parametrize("kind", first_in_test(["phone", "id card", "e-mail", "github", "openai", "aws"], 2))
def test_the_name_that_an_app_gives_a_conversation_is_nowhere_and_still_names_it(
    home: Home, sidecar: Sidecar, user: User, local_cloud: Cloud, planted: dict[str, tuple[str, str]], kind: str
) -> None:
    secret, _ = planted[kind]
    for number in range(3):
        sidecar.update(f"第 {number} 句", "好的，我决定用火锅底料", sessionId=secret)
    assert len({event["session_id"] for event in exchanges(sidecar)}) == 1
    assert sidecar.call("insights/next", sessionId=secret)
    assert sidecar.call("memory/command", text="不要保存", sessionId=secret)["done"] is True
    assert sidecar.call("daily/record", sessionId=secret)["reason"] == "skip"
    assert sidecar.call("memory/command", text="记住这个", sessionId=secret)["done"] is True
    assert sidecar.update("第 3 句", sessionId=secret)["recorded"]
    wait_for_lines(home, "第 3 句")
    assert "第 2 句" not in home.file.read_text("utf-8")
    wait_until_synced(sidecar)
    sidecar.stop()
    assert found_in_files(home, secret) == []
    assert secret not in ServerRows(local_cloud, user.user_id).all_rows_as_text()


def test_what_other_programs_append_is_nowhere(
    home: Home, sidecar: Sidecar, user: User, local_cloud: Cloud, planted: dict[str, tuple[str, str]]
) -> None:
    for _, sentence in planted.values():
        event = {"type": "memory_fact", "payload": {"content": sentence, "deep": [{"er": sentence}]}, "extra": sentence}
        sidecar.call("events/append", event=event)
        sidecar.call("events/append", event={"type": "message", "payload": {"role": "user", "content": sentence * 9}})
    sentences = [sentence for _, sentence in planted.values()]
    home.run("events", "append", json.dumps({"type": "note", "payload": {"of": sentences}}, ensure_ascii=False))
    wait_until_synced(sidecar)
    sidecar.stop()
    server = ServerRows(local_cloud, user.user_id).all_rows_as_text()
    for kind, (secret, _) in planted.items():
        assert found_in_files(home, secret) == [], kind
        assert secret not in server, kind


def test_what_is_typed_by_hand_stays_in_the_file_and_in_no_event_log_or_server_row(
    home: Home, sidecar: Sidecar, user: User, local_cloud: Cloud, planted: dict[str, tuple[str, str]]
) -> None:
    sidecar.update("第一句")
    wait_for_lines(home, "第一句")
    lines = [f"- {sentence}" for _, sentence in planted.values()]
    text = home.file.read_text("utf-8")
    home.file.write_text(text.replace("### 工作习惯\n", "### 工作习惯\n" + "\n".join(lines) + "\n"), "utf-8")
    manual_edit_events(sidecar, len(lines))
    edited = home.file.read_text("utf-8")
    for line in lines:
        edited = edited.replace(line, f"{line}，改过")
    home.file.write_text(edited, "utf-8")
    manual_edit_events(sidecar, 2 * len(lines))
    sidecar.update("之后")
    wait_for_lines(home, "之后", *(f"{line}，改过\n" for line in lines))  # raw, as it was typed
    wait_until_synced(sidecar)
    sidecar.call("sync/now")
    sidecar.stop()
    server = ServerRows(local_cloud, user.user_id).all_rows_as_text()
    assert "之后" in server
    databases = tuple(home.database.parent.glob("memory.db*"))
    for kind, (secret, _) in planted.items():
        assert found_in_files(home, secret, but=(home.file, *databases)) == [], kind
        assert found_in_tables(home, secret) == [], kind
        assert secret not in server, kind


def test_refused_input_is_neither_logged_nor_repeated_in_the_answer(
    home: Home, sidecar: Sidecar, planted: dict[str, tuple[str, str]]
) -> None:
    for _, sentence in planted.values():
        sidecar.process.stdin.write(f'{{"jsonrpc": "2.0", "id": 1, "method": "{sentence}\n'.encode())
    sentences = [sentence for _, sentence in planted.values()]
    bad = home.run("events", "append", json.dumps({"type": "x", "payload": sentences}), check=False)
    assert bad.returncode == 2
    with pytest.raises(CallFailed):
        sidecar.call("events/append", event={"type": "x", "payload": sentences})
    sidecar.load()
    sidecar.stop()
    for kind, (secret, _) in planted.items():
        assert found_in_files(home, secret) == [], kind


def test_logs_hold_no_words_of_the_memory(home: Home, sidecar: Sidecar, user: User) -> None:
    sidecar.update("这句话只属于记忆", "这句回答也是")
    wait_for_lines(home, "这句话只属于记忆")
    wait_until_synced(sidecar)
    sidecar.stop()
    logs = [*(home.data / "logs").iterdir(), home.folder / "stderr.log"]
    written = b"".join(path.read_bytes() for path in logs).decode()
    assert "sidecar" in written or "cloud" in written  # it does log
    for word in ("这句话", "这句回答", user.password, user.email):
        assert word not in written


def test_everything_of_ours_is_private_from_birth(home: Home, sidecar: Sidecar) -> None:
    sidecar.update("一")
    wait_until_synced(sidecar)
    for path in [home.data, *home.data.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
