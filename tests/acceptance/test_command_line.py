"""The command line as people and other programs use it: JSON in and out, exit codes, errors on stderr with a hint."""

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.environment import question_counts, unique_text, wait_for_lines
from tests.proof import first_in_test
from tests.sidecar import ANSWER_WITHIN, COMMAND, REPOSITORY, CallFailed, Home, Sidecar, start_process

if sys.platform == "linux":
    import fcntl

# The envelope of the event store's contract, and its event types.
STARTED: dict[str, Any] = {
    "schema_version": 1,
    "event_id": "evt_20260202_000001",
    "project_id": "proj_abcd1234",
    "project_path": "/abs/path/to/project",
    "session_id": "sess_20260202_001",
    "ts": "2026-02-02T10:00:00.000Z",
    "type": "session_started",
    "payload": {},
}
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("message", {"role": "user", "content": "我们用哪个数据库"}),
    ("tool_call", {"tool": "Write", "details": {"file_path": "src/main.py"}, "stage": "implement"}),
    ("memory_fact", {"fact_type": "decision", "content": "用 SQLite", "tags": ["db", "决定"]}),
    ("user_feedback", {"feedback_type": "correction", "content": "不要用英文回答"}),
    ("session_finalized", {}),
    ("something_of_tomorrow", {"nested": [{"deep": None}, 1, 1.5, True]}),
]
WRONG: list[tuple[str, Any]] = [
    ("type", ""),
    ("type", 3),
    ("payload", []),
    ("payload", {"content": "a" * 70_000}),
    ("ts", "now"),
    ("schema_version", 99),
    ("event_id", "e" * 129),
    ("project_id", "p" * 300),
    ("session_id", ["s"]),
]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def events(count: int) -> list[dict[str, Any]]:
    return [
        {**STARTED, "event_id": f"evt_20260202_{number:06}", "type": kind, "payload": payload}
        for number, (kind, payload) in enumerate((KINDS * count)[:count], start=2)
    ]


def abroad(home: Home, *arguments: str, stdin: bytes = b"", stdout: int = subprocess.PIPE) -> Any:
    """A command where the locale's encoding is that of a Chinese Windows."""
    environment = {**home.environment, "PYTHONIOENCODING": "cp936"}
    command = [*COMMAND, "--json", *arguments]
    return subprocess.run(
        command, env=environment, cwd=REPOSITORY, input=stdin, stdout=stdout, stderr=subprocess.PIPE, check=False
    )


def text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


class TestEvents:
    def test_append_keeps_the_envelope_of_the_seed_as_it_came(self, home: Home) -> None:
        told = home.json("events", "append", text(STARTED))
        assert told["eventIds"] == [STARTED["event_id"]]
        assert told["duplicates"] == []
        (event,) = home.json("events", "read", text({"project_id": "proj_abcd1234"}))["events"]
        assert {name: event[name] for name in STARTED} == {**STARTED, "event_id": event["event_id"]}
        assert event["client_id"] == STARTED["event_id"]

    def test_every_kind_comes_back_value_for_value(self, home: Home) -> None:
        home.settings["PRIVACY__STORE_MESSAGES"] = "true"
        home.json("events", "append-batch", text([{"type": kind, "payload": payload} for kind, payload in KINDS]))
        found = home.json("events", "tail")["events"]
        assert [(event["type"], event["payload"]) for event in found] == KINDS
        assert {event["project_id"] for event in found} == {"proj_global"}
        assert all(event["event_id"].startswith("evt_") for event in found)
        assert all(event["session_id"].startswith("sess_") for event in found)

    def test_fields_of_a_newer_writer_are_kept_value_for_value(self, home: Home) -> None:
        home.json("events", "append", text({**STARTED, "mood": {"level": 3}, "flags": [True, None]}))
        (event,) = home.json("events", "read")["events"]
        assert (event["mood"], event["flags"]) == ({"level": 3}, [True, None])

    def test_the_same_event_again_records_nothing_new(self, home: Home) -> None:
        home.json("events", "append", text(STARTED))
        again = home.json("events", "append", text(STARTED))
        assert again["eventIds"] == again["duplicates"] == [STARTED["event_id"]]
        assert len(home.json("events", "read")["events"]) == 1

    def test_the_same_id_with_another_content_is_refused(self, home: Home) -> None:
        home.json("events", "append", text(STARTED))
        other = home.run("events", "append", text({**STARTED, "payload": {"x": 1}}), check=False)
        assert other.returncode == 2
        assert STARTED["event_id"] in other.stderr
        assert len(home.json("events", "read")["events"]) == 1

    def test_a_batch_with_one_bad_event_is_not_recorded_at_all(self, home: Home) -> None:
        bad = home.run("--json", "events", "append-batch", text([*events(3), {"payload": {}}]), check=False)
        assert bad.returncode == 2
        assert json.loads(bad.stderr)["error"]["data"]["field"].startswith("events[3]")
        assert home.json("events", "read")["events"] == []

    def test_reading_goes_on_from_the_offset(self, home: Home) -> None:
        batch = events(6)
        ids = [event["event_id"] for event in batch]
        assert home.json("events", "append-batch", text(batch))["eventIds"] == ids
        first = home.json("events", "read", text({"limit": 4}))
        rest = home.json("events", "read", text({"after": first["nextOffset"]}))
        assert [event["client_id"] for event in first["events"] + rest["events"]] == ids
        nothing = home.json("events", "read", text({"after": rest["nextOffset"]}))
        assert (nothing["events"], nothing["nextOffset"]) == ([], rest["nextOffset"])

    def test_reading_filters_by_project_session_type_and_time(self, home: Home) -> None:
        other = {"project_id": "proj_other", "session_id": "sess_other", "ts": "2026-03-01T00:00:00Z"}
        with Sidecar(home) as sidecar:
            sidecar.call("events/appendBatch", events=[*events(6), {**STARTED, **other}])

            def count(**wanted: Any) -> int:
                return len(sidecar.call("events/read", **wanted)["events"])

            assert count(project_id="proj_abcd1234", limit=1000) == 6
            assert count(session_id="sess_other") == 1
            assert count(types=["message", "tool_call"]) == 2
            assert count(since_ts="2026-02-15T00:00:00Z") == 1
            assert count(until_ts="2026-02-15T00:00:00Z") == 6
            assert count(since_ts="2026-02-02T18:00:00+08:00", until_ts="2026-02-15T00:00:00Z") == 6
            assert count(project_id="proj_abcd1234", types=["message"], after=1) == 0

    def test_tail_gives_the_newest_oldest_of_them_first(self, home: Home) -> None:
        batch = events(6)
        home.json("events", "append-batch", text(batch))
        told = home.json("events", "tail", text({"project_id": "proj_abcd1234", "limit": 2}))
        assert [event["client_id"] for event in told["events"]] == [event["event_id"] for event in batch[-2:]]

    @pytest.mark.parametrize("verb", ["append", "append-batch", "read", "tail"])
    def test_a_dash_reads_standard_input(self, home: Home, verb: str) -> None:
        value: Any = {"append": STARTED, "append-batch": [STARTED]}.get(verb, {"limit": 5})
        told = home.json("events", verb, "-", stdin=text(value))
        assert told["nextOffset"] == (1 if verb.startswith("append") else 0)

    @pytest.mark.parametrize("argument", ["", "[1", '"text"', '{"type": ""}', '{"type": "x", "payload": NaN}'])
    def test_what_is_no_event_exits_2_and_says_why(self, home: Home, argument: str) -> None:
        bad = home.run("events", "append", argument, check=False)
        assert (bad.returncode, bad.stdout) == (2, "")
        assert "Traceback" not in bad.stderr
        assert bad.stderr.startswith("错误：")
        assert "\n提示：" in bad.stderr

    @pytest.mark.parametrize(("verb", "argument"), [("read", '{"limits": 3}'), ("tail", "[]"), ("read", "{")])
    def test_what_is_no_filter_exits_2(self, home: Home, verb: str, argument: str) -> None:
        bad = home.run("events", verb, argument, check=False)
        assert (bad.returncode, bad.stdout) == (2, "")
        assert "提示：" in bad.stderr

    def test_each_wrong_field_is_refused_by_its_name(self, home: Home) -> None:
        with Sidecar(home) as sidecar:
            for field, value in WRONG:
                with pytest.raises(CallFailed) as refused:
                    sidecar.call("events/append", event={"type": "x", field: value})
                assert refused.value.kind in {"invalid_input", "too_large"}, field
                assert field in refused.value.data["field"], refused.value.data
            for name, wanted in [("limit", 0), ("after", -1), ("since_ts", "soon"), ("types", "x")]:
                with pytest.raises(CallFailed) as refused:
                    sidecar.call("events/read", **{name: wanted})
                assert refused.value.code == -32602
                assert name in refused.value.data["field"], refused.value.data
            assert sidecar.call("events/read")["events"] == []

    def test_an_import_that_finds_no_event_at_all_exits_1(self, home: Home, tmp_path: Path) -> None:
        lines = tmp_path / "events.jsonl"
        lines.write_text("# no event\nnor this\n", "utf-8")
        refused = home.run("--json", "events", "import", str(lines), check=False)
        assert (refused.returncode, json.loads(refused.stdout)["refused"]) == (1, 2)
        lines.write_text(f"{text(STARTED)}\nno event\n", "utf-8")
        for recorded, known in ((1, 0), (0, 1)):
            told = home.json("events", "import", str(lines))
            assert (told["recorded"], told["known"], told["refused"]) == (recorded, known, 1)


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """What is started here does, also where the tests themselves run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class TestForm:
    @pytest.mark.parametrize("arguments", [("--json", "events", "tail"), ("events", "tail", "--json")])
    def test_json_may_stand_before_or_after_the_verb(self, home: Home, arguments: tuple[str, ...]) -> None:
        assert json.loads(home.run(*arguments).stdout) == {"events": [], "nextOffset": 0}

    @pytest.mark.parametrize("verb", [["load"], ["status"], ["update", "问", "答"]], ids=lambda verb: verb[0])
    def test_one_json_object_is_all_there_is_on_stdout(self, home: Home, verb: list[str]) -> None:
        for arguments in (["--json", *verb], [*verb, "--json"]):
            printed = home.run(*arguments).stdout
            assert isinstance(json.loads(printed), dict)
            assert printed.count("\n") == 1

    @pytest.mark.parametrize(
        ("arguments", "field"),
        [
            (["daily", "record", "--turns", "xx"], "turns"),
            (["daily", "record", "--summary", "{bad"], "summary"),
            (["daily", "list", "--since", "2026-13-01"], "since"),
            (["daily", "config", "nope.nope"], "nope.nope"),
            (["events", "append", "-"], "event"),
            (["update", "\udcff", "答"], "userMessage"),
            (["events", "append", '{"type": "\udcff"}'], "event"),
            (["events", "import", "\udcff"], "paths"),
            (["events", "import", "~nobody-of-this-name/x"], "paths"),
            (["export", "~nobody-of-this-name/x"], "path"),
            (["watermarks", "set", "a", "9" * 20], "position"),
            (["watermarks", "set", "a", "9" * 5_000], "eventId"),
        ],
        ids=lambda given: " ".join(given)[:40].encode("ascii", "replace").decode() if isinstance(given, list) else "",
    )
    def test_wrong_input_exits_2_and_names_the_field(self, home: Home, arguments: list[str], field: str) -> None:
        wrong = home.run(*arguments, "--json", stdin="[" * 100_000 + "]" * 100_000, check=False)
        assert (wrong.returncode, wrong.stdout) == (2, "")
        error = json.loads(wrong.stderr)["error"]["data"]
        assert (error["kind"], error["field"]) == ("invalid_input", field)
        assert error["hint"]

    def test_pipes_carry_utf_8_whatever_the_locale_says(self, home: Home) -> None:
        said = {"type": "x", "payload": {"content": "小白记忆😀"}}
        for given in (text(said).encode(), b"\xef\xbb\xbf" + text(said).encode()):
            assert abroad(home, "events", "append", "-", stdin=given).returncode == 0
        shown = abroad(home, "events", "read").stdout.decode()
        assert [event["payload"] for event in json.loads(shown)["events"]] == [said["payload"]] * 2

        refused = abroad(home, "events", "append", "-", stdin=text(said).encode("gbk", "ignore"))
        assert (refused.returncode, refused.stdout) == (2, b"")
        assert json.loads(refused.stderr)["error"]["message"] == "standard input is not text in UTF-8"

    @pytest.mark.skipif(sys.platform == "win32", reason="there is no terminal to open")
    def test_what_a_terminal_cannot_show_fails_no_command(self, home: Home) -> None:
        screen, terminal = os.openpty()
        try:
            said = text({"type": "x", "payload": {"content": "记忆😀"}})
            assert abroad(home, "events", "append", said, stdout=terminal).returncode == 0
            assert "记忆?".encode("cp936") in os.read(screen, 65_536)
        finally:
            os.close(screen)
            os.close(terminal)

    def test_an_error_is_one_json_object_on_stderr_with_a_hint(self, home: Home) -> None:
        failed = home.run("--json", "sync", check=False)
        assert (failed.returncode, failed.stdout) == (1, "")
        error = json.loads(failed.stderr)["error"]
        assert error["data"]["kind"] == "cloud_not_configured"
        assert error["data"]["hint"]

    @pytest.mark.parametrize(
        "command",
        first_in_test(
            (
                *("daily list", "daily review", "daily merge", "daily clean", "history", "insights instincts"),
                *("session-meta list", "notes questions --project .", "notes list --project .", "quarantine list"),
            )
        ),
    )
    def test_an_empty_list_is_said_to_be_empty(self, home: Home, command: str) -> None:
        assert home.run(*command.split()).stdout.strip()

    @pytest.mark.parametrize("arguments", [["no-such-verb"], ["events"], ["events", "append"], ["load", "--nonsense"]])
    def test_wrong_usage_exits_2(self, home: Home, arguments: list[str]) -> None:
        assert home.run(*arguments, check=False).returncode == 2

    def test_wrong_usage_with_json_is_one_json_object_too(self, home: Home) -> None:
        for arguments in (["no-such-verb"], ["facts", "edit"], ["load", "--wait-ms", "x"], ["forget"]):
            failed = home.run(*arguments, "--json", check=False)
            assert (failed.returncode, failed.stdout) == (2, "")
            error = json.loads(failed.stderr)["error"]
            assert error["message"]
            assert error["data"]["kind"] == "invalid_input"

    def test_an_unknown_setting_is_named(self, home: Home) -> None:
        home.settings["SYNC__POL_SECONDS"] = "3"
        failed = home.run("load", check=False)
        assert failed.returncode == 1
        assert "XIAOBAI_SYNC__POL_SECONDS" in failed.stderr

    def test_load_prints_the_memory_and_nothing_else_on_stdout(self, home: Home) -> None:
        home.run("update", "今天吃什么", "面条")
        shown = home.run("load")
        assert shown.stdout == home.file.read_text("utf-8")
        assert "来源：local" in shown.stderr

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal of Ctrl-C for one process")
    @pytest.mark.usefixtures("hears_ctrl_c")
    def test_ctrl_c_while_a_command_is_still_being_imported_ends_it_without_a_traceback(self, home: Home) -> None:
        command = [sys.executable, "-X", "importtime", *COMMAND[1:], "status"]
        with subprocess.Popen(
            command, env=home.environment, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0
        ) as process:
            assert process.stderr is not None
            if sys.platform == "linux":  # it says more than this while it imports, and waits for a reader then
                fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)
            lines = iter(process.stderr.readline, b"")
            assert any(line.rstrip().endswith(b" sqlalchemy") for line in lines)  # what is ours comes next
            process.send_signal(signal.SIGINT)
            told = process.stderr.read()
        assert process.returncode == -signal.SIGINT
        assert b"Traceback" not in told

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux alone has a disk that is always full")
    @pytest.mark.parametrize(
        "verb",
        first_in_test(
            ["update 问 答", "load --help", "load", "status --json", "redact README.md", "doctor", "events verify"], 2
        ),
    )
    def test_an_answer_that_the_disk_does_not_take_is_told_and_what_was_asked_is_done(
        self, home: Home, verb: str
    ) -> None:
        with Path("/dev/full").open("wb") as full:
            ended = subprocess.run(
                [*COMMAND, *verb.split()],
                env=home.environment,
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert ended.returncode == 1
        *_, error = ended.stderr.partition("错误")
        assert "Traceback" not in ended.stderr
        assert "Exception ignored" not in ended.stderr
        assert "结果无法写到标准输出" in error
        assert "要做的已经完成" in error
        if verb.startswith("update"):
            assert question_counts(home.file.read_text("utf-8")) == {"问": 1}


class TestBesideASidecar:
    def test_an_update_from_the_command_line_is_in_the_sidecar_s_load(self, home: Home) -> None:
        with Sidecar(home) as sidecar:
            sidecar.update("从应用")
            word = unique_text("从命令行")
            home.run("update", word, "好的")
            assert question_counts(sidecar.load()["document"]) == {"从应用": 1, word: 1}
            wait_for_lines(home, word)

    def test_events_from_both_are_numbered_without_a_gap(self, home: Home) -> None:
        with Sidecar(home) as sidecar:
            for number in range(4):
                sidecar.update(f"应用 {number}")
                home.run("events", "append", text({"type": "memory_fact", "payload": {"content": f"命令 {number}"}}))
            found = sidecar.call("events/read")["events"]
        assert [event["replica_seq"] for event in found] == list(range(1, 9))
        assert len({event["replica_id"] for event in found}) == 1

    def test_the_command_line_alone_keeps_the_file_too(self, home: Home) -> None:
        home.run("update", "没有服务", "也行")
        assert question_counts(home.file.read_text("utf-8")) == {"没有服务": 1}


FIRST_CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("initialize", {}),
    ("memory/load", {"waitMs": 0}),
    ("memory/update", {"userMessage": "二", "aiResponse": "好的"}),
)


class TestServe:
    def test_a_second_one_on_the_same_data_says_already_running(self, home: Home) -> None:
        with Sidecar(home) as first:
            first.update("一")
            second = Sidecar(home)
            calls = [second.send(method, **params) for method, params in FIRST_CALLS]
            for call in calls:
                with pytest.raises(CallFailed) as refused:
                    second.wait_for_response(call)
                assert refused.value.kind == "already_running"
            assert second.process.wait(ANSWER_WITHIN) == 1
            told = (home.folder / "stderr.log").read_text("utf-8")
            assert "error: another process serves" in told
            assert "\nhint: " in told
            assert "Traceback" not in told
            assert question_counts(first.load()["document"]) == {"一": 1}  # the first one minds its business

    @pytest.mark.parametrize("kind", ["sb_secret", "legacy"])
    @pytest.mark.parametrize("verb", ["serve", "load", "login a@example.com --password-stdin"])
    def test_a_service_key_ends_it_and_is_never_shown(self, home: Home, kind: str, verb: str) -> None:
        key = f"sb_secret_{secrets.token_urlsafe(24)}" if kind == "sb_secret" else legacy_service_key()
        home.settings |= {"SUPABASE_URL": "http://127.0.0.1:1", "SUPABASE_KEY": key}
        refused = home.run(*verb.split(), check=False)
        assert refused.returncode == 1
        assert "XIAOBAI_SUPABASE_KEY" in refused.stderr
        assert ("hint: " if verb == "serve" else "提示：") in refused.stderr
        assert key not in refused.stderr + refused.stdout
        assert all(part not in refused.stderr + refused.stdout for part in key.split("."))
        assert not [path for path in home.folder.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]

    def test_nothing_but_protocol_is_on_its_stdout(self, home: Home) -> None:
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "memory/update",
            "params": {"userMessage": "问", "aiResponse": "答"},
        }
        pipe = subprocess.PIPE
        with (home.folder / "stderr.log").open("wb") as complaints:
            served = start_process(
                [*COMMAND, "serve"], env=home.environment, cwd=REPOSITORY, stdin=pipe, stdout=pipe, stderr=complaints
            )
        served.stdin.write(f"{text(call)}\nnonsense\n".encode())
        served.stdin.flush()
        answers = [json.loads(served.stdout.readline()) for _ in range(2)]
        served.stdin.close()  # only now: what a slow machine has not answered by the end of its input is not answered
        assert served.stdout.read() == b""
        assert {answer.get("id") for answer in answers} == {1, None}
        assert all(answer["jsonrpc"] == "2.0" for answer in answers)
        assert served.wait(ANSWER_WITHIN) == 0

    def test_with_nobody_at_the_other_end_it_leaves_at_once(self, home: Home) -> None:
        served = subprocess.run(
            [*COMMAND, "serve"],
            env=home.environment,
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=20,
        )
        assert (served.returncode, served.stdout) == (0, b"")


def legacy_service_key() -> str:
    """A JWT as Supabase issued them before 2025, for a role that passes row-level security by."""
    parts = ({"alg": "HS256", "typ": "JWT"}, {"iss": "supabase", "role": "service_role", "exp": 4_000_000_000})
    head = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*head, secrets.token_urlsafe(32)])
