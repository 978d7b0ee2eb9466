"""What a newcomer does first: a trial in a folder of its own, and the mistakes of a first day."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.sidecar import REPOSITORY, Home, Sidecar

TOUR: Final = [
    ["update", "I prefer tabs", "Noted."],
    ["load"],
    ["remember", "save this"],
    ["daily", "list"],
    ["daily", "config"],
    ["search", "tabs"],
    ["status"],
    ["doctor"],
    ["history"],
    ["events", "tail"],
    ["events", "rebuild-files"],
    ["session-meta", "list"],
    ["insights", "report"],
    ["retention", "plan"],
    ["redact", "--log"],
    ["remember", "清理旧记忆"],
]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def refused(home: Home, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = home.run(*arguments, stdin=stdin, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done


def test_a_trial_with_its_own_file_and_folder_writes_nothing_into_the_home(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    trial = tmp_path / "trial"
    trial.mkdir()
    home.settings |= {"MEMORY_FILE": str(trial / "memory.md"), "DATA_DIR": str(trial / "data"), "TOKEN_STORE": "auto"}
    for arguments in TOUR:
        home.run(*arguments)
    with Sidecar(home) as sidecar:
        sidecar.update("My second question")
        assert sidecar.call("memory/command", text="记住这个", turns=[{"role": "user", "content": "缩进用空格"}])[
            "done"
        ]
    assert list((trial / "data").rglob("daily/*.md"))
    assert [path.name for path in home.folder.rglob("*")] == ["stderr.log"], "the test's own"


def test_a_data_folder_that_is_a_file_is_named_as_such(home: Home) -> None:
    home.data.write_text("", "utf-8")
    for folder in (home.data, home.data / "below"):
        home.settings["DATA_DIR"] = str(folder)
        done = refused(home, "load")
        assert f"{home.data} is a file, not a folder" in done.stderr
        assert "XIAOBAI_DATA_DIR" in done.stderr


def test_a_relative_path_is_refused_but_not_after_a_flag(home: Home) -> None:
    home.settings["MEMORY_FILE"] = "memory.md"
    done = refused(home, "load")
    assert "XIAOBAI_MEMORY_FILE" in done.stderr
    assert "absolute" in done.stderr
    assert str(REPOSITORY / "memory.md") in home.run("--memory-file", "memory.md", "config").stdout


def test_a_supabase_key_of_no_known_shape_is_a_warning(home: Home) -> None:
    home.settings |= {"SUPABASE_URL": "http://127.0.0.1:9", "SUPABASE_KEY": "hello"}
    assert home.json("status")["document"]["warnings"] == ["supabase_key_unknown"]
    with Sidecar(home) as sidecar:
        assert sidecar.call("sync/status")["document"]["warnings"] == ["supabase_key_unknown"]
    for key in ("sb_publishable_x", "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9.c2lnbmF0dXJl"):
        home.settings["SUPABASE_KEY"] = key
        assert home.json("status")["document"]["warnings"] == []
