"""A memory encrypted at rest, lived in by the real program: said, found, killed, started again, turned off."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sync.encryption.database_encryption import KEY_FILE
from tests.acceptance.environment import files_containing, integrity, local_rows, question_counts
from tests.sidecar import Home, Sidecar, TimedSidecar, wait_until

SECRET_WORDS = "青梅竹马"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a", PRIVACY__ENCRYPT_AT_REST="true")


def fact(content: str) -> dict[str, object]:
    return {"type": "memory_fact", "event_id": f"fact-{content}", "payload": {"content": content}}


def test_the_whole_life_of_an_encrypted_memory(home: Home) -> None:
    with Sidecar(home) as app:
        app.update(f"记住{SECRET_WORDS}这个词", "记住了")
        app.call("events/append", event=fact("周末和小李去吃了重庆火锅"))
        assert app.call("recall/search", query="火锅")["hits"][0]["text"] == "周末和小李去吃了重庆火锅"
        home.json("events", "append", json.dumps(fact("国庆节去黄山爬山")))  # another process, while a sidecar runs
        assert home.json("search", "爬山")["hits"][0]["text"] == "国庆节去黄山爬山"
        loaded = app.load(waitMs=0)
        wait_until(lambda: home.file.exists() and SECRET_WORDS in home.file.read_text("utf-8"))
        assert app.call("doctor")["ok"] is True
        on_disk = files_containing(home.database.parent, SECRET_WORDS) + files_containing(home.database.parent, "火锅")
        assert on_disk == [], "neither in the database nor in its write-ahead log"
        app.kill()
    with Sidecar(home) as app:
        assert question_counts(app.load(waitMs=0)["document"]) == question_counts(loaded["document"])
        assert app.call("recall/search", query="爬山")["hits"][0]["text"] == "国庆节去黄山爬山"
        assert app.call("events/verify")["problems"] == []
    assert integrity(home) == "ok"
    with closing(sqlite3.connect(home.database)) as stranger, pytest.raises(sqlite3.DatabaseError):
        stranger.execute("select 1 from sqlite_master")
    digits = (home.database.with_name(KEY_FILE)).read_text().partition(":")[2]
    shown = home.run("config").stdout + home.run("--json", "status").stdout + home.run("doctor").stdout
    assert digits not in shown
    assert [path.name for path in files_containing(home.folder, digits)] == [KEY_FILE], "in no log, and nowhere else"


def test_turned_on_over_an_old_memory_and_off_again_it_stays_the_same_memory(home: Home) -> None:
    home.settings["PRIVACY__ENCRYPT_AT_REST"] = "false"
    with Sidecar(home) as app:
        for number in range(5):
            app.update(f"第 {number} 个问题", SECRET_WORDS)
        asked = question_counts(app.load(waitMs=0)["document"])
    before = local_rows(home, "select * from events order by position")
    for encrypts in ("true", "false"):
        home.settings["PRIVACY__ENCRYPT_AT_REST"] = encrypts
        with Sidecar(home) as app:
            assert question_counts(app.load(waitMs=0)["document"]) == asked
            assert app.call("sync/status")["document"]["warnings"] == []
        assert local_rows(home, "select * from events order by position")[: len(before)] == before
        assert (files_containing(home.database.parent, "个问题") == []) == (encrypts == "true")


def test_without_the_extra_it_says_what_to_install_and_touches_nothing(home: Home) -> None:
    home.json("update", "旧的", "好的")
    before = home.database.read_bytes()
    missing = home.folder / "without" / "sqlcipher3"
    missing.mkdir(parents=True)
    (missing / "__init__.py").write_text("raise ImportError('as if it were not installed')")

    class Without(Home):
        @property
        def environment(self) -> dict[str, str]:
            return {**super().environment, "PYTHONPATH": str(missing.parent)}

    without = Without(home.folder, **{name: value for name, value in home.settings.items() if name != "DEVICE_ID"})
    with TimedSidecar(without) as app:  # a new interpreter, which looks for the package again
        assert app.process.wait(30) == 1
    assert "pip install '.[encryption]'" in (home.folder / "stderr.log").read_text()
    assert home.database.read_bytes() == before
    assert len(home.json("events", "read", "{}")["events"]) == 1
