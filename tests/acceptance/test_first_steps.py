"""What a newcomer does first: a trial in a folder of its own, and the mistakes of a first day."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from bridge.cli.parser import app
from bridge.rpc.framing import FRAME_LIMIT, FramingError
from bridge.rpc.messages import reject_framing_error
from sync import __version__
from tests.acceptance.environment import unreachable_cloud_settings
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


def test_without_a_cloud_nothing_waits_and_deliveries_are_kept_for_a_first_login(home: Home) -> None:
    with Sidecar(home) as sidecar:
        assert sidecar.update("一")["pending"] == 0
        assert sidecar.update("")["pending"] == 0
        assert sidecar.load()["pending"] == 0
        assert sidecar.call("sync/status")["pending"] == 0
    assert json.loads(home.run("load", "--json").stdout)["pending"] == 0
    assert "0 条待发送" in home.run("status").stdout
    checks = json.loads(home.run("doctor", "--json", check=False).stdout)["checks"]
    findings = {check["name"]: check["found"] for check in checks}
    assert findings["outbox"] == "no cloud: nothing to send, 0 set aside"
    home.settings |= unreachable_cloud_settings()
    assert json.loads(home.run("status", "--json").stdout)["pending"] > 0


def test_a_data_folder_that_is_a_file_is_named_as_such(home: Home) -> None:
    home.data.write_text("", "utf-8")
    for folder in (home.data, home.data / "below"):
        home.settings["DATA_DIR"] = str(folder)
        done = refused(home, "load")
        assert f"{home.data} 是文件，不是文件夹" in done.stderr
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
        status = home.json("status")
        assert (status["document"]["warnings"], status["cloud"]["state"]) == ([], "signed_out"), "nobody is logged in"


def test_the_version_and_the_short_help_exist(home: Home) -> None:
    assert home.run("--version").stdout == f"xiaobai-memory {__version__}\n"
    for arguments in (["-h"], ["load", "-h"], ["events", "read", "-h"]):
        assert "Usage" in home.run(*arguments).stdout


def test_no_help_text_speaks_of_the_documents_the_program_was_made_from() -> None:
    texts = list(help_texts(typer.main.get_command(app)))
    assert len(texts) > 100
    assert [text for text in texts if "seed" in text.lower()] == []


def help_texts(command: Any) -> Iterator[str]:
    yield command.help or ""
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
    for below in getattr(command, "commands", {}).values():
        yield from help_texts(below)


def test_presets_have_plain_names_and_those_of_the_wire_stay(home: Home) -> None:
    home.run("update", "I prefer tabs", "Noted.")
    for name in ("default", "fading", "meaning", "seed000", "seed004"):
        assert len(home.json("search", "tabs", "--preset", name)["hits"]) == 1
    done = refused(home, "search", "tabs", "--preset", "best")
    assert "fading" in done.stderr
    assert "seed" not in done.stderr


def test_what_the_user_typed_is_found_as_such(home: Home) -> None:
    home.run("update", "Where do the violets grow?", "Behind the cellar.")
    (question,) = home.json("search", "violets")["hits"]
    (answer,) = home.json("search", "cellar")["hits"]
    assert (question["origin"], answer["origin"]) == ("user-typed", "model-written")


def test_a_version_is_restored_by_the_first_digits_of_its_hash(home: Home) -> None:
    home.run("update", "one", "ok")
    home.run("load")
    wanted = home.json("history")["versions"][0]["sha256"]
    home.run("update", "two", "ok")
    home.run("load")
    assert home.json("restore", wanted[:7].upper())["sha256"]
    unknown = next(digits for digits in ("0" * 7, "f" * 7) if not wanted.startswith(digits))
    assert "没有这个哈希的版本" in refused(home, "restore", unknown).stderr
    for text in ("abc", "not-hex", wanted + "0"):
        stderr = refused(home, "restore", text).stderr
        assert "十六进制数字" in stderr
        assert "regex" not in stderr


def test_too_much_text_is_refused_alike_by_shell_and_wire(home: Home) -> None:
    on_the_wire = reject_framing_error(FramingError.TOO_LARGE).error
    text = '"' + "x" * FRAME_LIMIT + '"'
    for arguments in (["update", "-", "ok"], ["events", "append", "-"], ["search", "-"]):
        error = json.loads(refused(home, "--json", *arguments, stdin=text).stderr)["error"]
        assert (error["message"], error["data"]["hint"]) == (on_the_wire.message, on_the_wire.data.hint)
    assert home.json("events", "read")["events"] == []


def test_an_event_of_an_unknown_type_is_recorded_and_named(home: Home) -> None:
    answer = home.json("events", "append", '{"type": "nonsense"}')
    assert answer["unknownTypes"] == ["nonsense"]
    assert len(answer["eventIds"]) == 1
    assert "unknownTypes" not in home.json("events", "append", '{"type": "memory_fact", "payload": {"content": "a"}}')
    assert "nonsense" in home.run("events", "append", '{"type": "nonsense"}').stderr


def test_a_second_sidecar_says_so_even_without_a_request(home: Home) -> None:
    with Sidecar(home) as sidecar:
        sidecar.call("sync/status")
        done = refused(home, "serve")
        assert f"another process serves {home.data}" in done.stderr
        assert sidecar.load(waitMs=0)


def test_a_folder_in_the_place_of_the_memory_file_is_named_in_plain_words(home: Home) -> None:
    home.file.mkdir()
    with Sidecar(home) as sidecar:
        sidecar.call("sync/status")
    log = (home.data / "logs" / "sidecar.log").read_text("utf-8")
    assert f"{home.file} is a folder, not a file" in log
    assert "EISDIR" not in log


def test_a_login_that_cannot_reach_the_server_says_what_to_check(home: Home) -> None:
    home.settings |= {"SUPABASE_URL": "https://no-such-host.invalid", "SUPABASE_KEY": "sb_publishable_x"}
    done = refused(home, "login", "--phone", "13800138000")
    assert "XIAOBAI_SUPABASE_URL" in done.stderr
    assert "name@example.com" in refused(home, "login", "--email", "ann").stderr
