"""The log for other programs: quarantine, offsets, verification, a live tail, and notifications."""

import json
import queue
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bridge.methods.registry import METHOD_TABLE
from tests.acceptance.environment import local_rows
from tests.sidecar import ANSWER_WITHIN, COMMAND, REPOSITORY, CallFailed, Home, NotificationListener, Sidecar


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a", PRIVACY__STORE_MESSAGES="true")  # else a note has no text


@pytest.fixture
def listener(home: Home) -> Iterator[NotificationListener]:
    with NotificationListener(home) as ear:
        yield ear


def change(home: Home, *statements: str) -> None:
    """Change the database as a broken disk or another program would."""
    with closing(sqlite3.connect(home.database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def events_with_two_refused(home: Home) -> list[str]:
    """Record three events, of which the server refused the first two permanently; return their ids."""
    ids: list[str] = [home.json("events", "append", json.dumps(note(text)))["eventIds"][0] for text in "一二三"]
    for position in (1, 2):
        change(
            home,
            f"update deliveries set state = 'quarantined' where position = {position}",
            "insert into quarantine (destination, position, code, message, noticed_at)"
            f" values ('cloud', {position}, '22023', 'too strange', '2026-01-08T00:00:00Z')",
        )
    return ids


def note(text: str) -> dict[str, Any]:
    return {"type": "note_taken", "payload": {"text": text}}


def states(home: Home) -> list[str]:
    return [state for (state,) in local_rows(home, "select state from deliveries order by position")]


class TestQuarantine:
    def test_by_rpc_it_is_listed_retried_and_dropped(self, home: Home, events_with_two_refused: list[str]) -> None:
        with Sidecar(home) as sidecar:
            assert sidecar.call("sync/status")["quarantined"] == 2
            listed = sidecar.call("sync/quarantine")
            assert [event["eventId"] for event in listed["events"]] == events_with_two_refused[:2]
            assert listed["events"][0]["code"] == "22023"
            assert listed["events"][0]["message"] == "too strange"
            assert listed["released"] == []
            for action in ("retry", "drop"):
                with pytest.raises(CallFailed, match="evt_unknown"):
                    sidecar.call("sync/quarantine", action=action, eventIds=[events_with_two_refused[0], "evt_unknown"])
            assert sidecar.call("sync/status")["quarantined"] == 2
            retried = sidecar.call("sync/quarantine", action="retry", eventIds=[events_with_two_refused[0]])
            assert retried["released"] == [events_with_two_refused[0]]
            assert [event["eventId"] for event in retried["events"]] == [events_with_two_refused[1]]
            dropped = sidecar.call("sync/quarantine", action="drop")
            assert (dropped["released"], dropped["events"]) == ([events_with_two_refused[1]], [])
            assert sidecar.call("sync/status")["quarantined"] == 0
            assert len(sidecar.call("events/read")["events"]) == 3
        assert states(home) == ["pending", "dropped", "pending"]

    def test_by_command_line(self, home: Home, events_with_two_refused: list[str]) -> None:
        assert events_with_two_refused[0] in home.run("quarantine", "list").stdout
        assert home.json("quarantine", "retry", events_with_two_refused[1])["released"] == [events_with_two_refused[1]]
        assert home.json("quarantine", "drop")["released"] == [events_with_two_refused[0]]
        assert "没有被搁置的事件" in home.run("quarantine", "list").stdout
        failed = home.run("--json", "quarantine", "drop", "evt_unknown", check=False)
        assert (failed.returncode, failed.stdout) == (2, "")
        assert json.loads(failed.stderr)["error"]["data"]["field"] == "eventIds"
        assert states(home) == ["dropped", "pending", "pending"]


class TestWatermarks:
    def test_a_consumer_keeps_its_offset(self, home: Home) -> None:
        unknown = {"name": "my-exporter", "position": 0, "eventId": None}
        assert home.json("watermarks", "get", "my-exporter") == unknown
        home.json("events", "append-batch", json.dumps([note(f"{number}") for number in range(7)]))
        home.json("watermarks", "set", "my-exporter", "7")
        with Sidecar(home) as sidecar:
            assert sidecar.call("watermarks/get", name="my-exporter")["position"] == 7
            sidecar.call("watermarks/set", name="my-exporter", position=3)
        assert home.run("watermarks", "get", "my-exporter").stdout.startswith("my-exporter 3 evt_")

    def test_an_offset_beyond_the_log_is_refused_and_the_newest_is_named(
        self, home: Home, events_with_two_refused: list[str]
    ) -> None:
        for far in ("4", "99999999"):
            wrong = home.run("watermarks", "set", "far", far, check=False)
            assert (wrong.returncode, wrong.stdout) == (2, "")
            assert "最新的是 3" in wrong.stderr
        assert home.json("watermarks", "get", "far")["position"] == 0
        assert home.json("watermarks", "set", "far", "3")["eventId"] == events_with_two_refused[2]

    @pytest.mark.usefixtures("events_with_two_refused")
    @pytest.mark.parametrize("arguments", [["read"], ["tail"], ["tail", "--follow"]], ids=" ".join)
    def test_a_consumer_of_another_log_gets_an_error_and_does_not_wait(self, home: Home, arguments: list[str]) -> None:
        verb, *flags = arguments
        assert home.json("events", "read", '{"after": 3}') == {"events": [], "nextOffset": 3}
        wrong = home.run("events", verb, '{"after": 4}', *flags, check=False)
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert "最新的是 3" in wrong.stderr
        assert "从 0 开始" in wrong.stderr

    @pytest.mark.usefixtures("events_with_two_refused")
    def test_a_consumer_at_a_damaged_event_continues(self, home: Home) -> None:
        change(home, "delete from deliveries where position = 3", "delete from events where position = 3")
        home.json("watermarks", "set", "mine", "3")
        home.json("events", "append", json.dumps(note("四")))
        (later,) = home.json("events", "read", '{"after": 3}')["events"]
        assert later["position"] == 4

    def test_an_offset_can_be_given_as_an_event_id(self, home: Home) -> None:
        batch = [{"type": "x", "event_id": f"evt_{number}"} for number in range(3)]
        home.json("events", "append-batch", json.dumps(batch))
        second = home.json("events", "read")["events"][1]
        assert second["client_id"] == "evt_1"
        offset = {"name": "mine", "position": 2, "eventId": "evt_1"}
        assert home.json("watermarks", "set", "mine", "evt_1") == offset
        assert home.json("watermarks", "get", "mine") == offset
        refused = home.run("watermarks", "set", "mine", "evt_unknown", check=False)
        assert (refused.returncode, "没有这个编号的事件" in refused.stderr) == (2, True)

    @pytest.mark.parametrize("name", ["document", "document.on_disk", "recall"])
    def test_other_programs_cannot_move_internal_offsets(self, home: Home, name: str) -> None:
        refused = home.run("watermarks", "set", name, "0", check=False)
        assert refused.returncode == 2
        assert name in refused.stderr

    @pytest.mark.parametrize("arguments", [("Upper", "1"), ("a b", "1"), ("mine", "-1"), ("mine", "x")])
    def test_a_wrong_name_or_offset_exits_2(self, home: Home, arguments: tuple[str, str]) -> None:
        assert home.run("watermarks", "set", "--", *arguments, check=False).returncode == 2


class TestVerify:
    @pytest.mark.usefixtures("events_with_two_refused")
    def test_verify_of_a_sound_log_says_so(self, home: Home) -> None:
        assert home.json("events", "verify") == {"ok": True, "events": 3, "problems": []}

    @pytest.mark.parametrize(
        ("damage", "what"),
        [
            ("delete from deliveries where position = 3", "an event that may leave has no delivery"),
            ("update events set reach = 'local' where position = 3", "an event that must stay has a delivery"),
            ("update events set payload = '[]' where position = 3", "a payload is not a JSON object"),
            ("update events set payload = '{' where position = 3", "a payload is not a JSON object"),
            ("update events set replica_seq = 9 where position = 3", "the replica's numbers have a hole"),
            ("update events set hlc = '0' where position = 3", "an event is earlier than the one recorded before it"),
        ],
    )
    def test_a_damaged_row_is_named(
        self, home: Home, events_with_two_refused: list[str], damage: str, what: str
    ) -> None:
        change(home, damage)
        result = home.run("--json", "events", "verify", check=False)
        assert result.returncode == 1
        verdict = json.loads(result.stdout)
        assert verdict["ok"] is False
        (problem,) = verdict["problems"]
        assert problem["what"].startswith(what)
        assert problem["examples"] == [events_with_two_refused[2]]
        assert "有损坏" in home.run("events", "verify", check=False).stdout


class TestTail:
    def test_followed_by_the_command_line_it_prints_what_another_process_appends(self, home: Home) -> None:
        home.json("events", "append", json.dumps(note("早先的")))
        with subprocess.Popen(
            [*COMMAND, "--json", "events", "tail", "--follow"],
            env=home.environment,
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
        ) as tail:
            lines: queue.Queue[str] = queue.Queue()
            assert tail.stdout is not None
            output = tail.stdout

            def listen() -> None:
                for line in output:
                    lines.put(line)

            threading.Thread(target=listen, daemon=True).start()
            try:
                assert json.loads(lines.get(timeout=ANSWER_WITHIN))["payload"] == {"text": "早先的"}
                home.json("events", "append", json.dumps(note("后来的")))
                assert json.loads(lines.get(timeout=ANSWER_WITHIN))["payload"] == {"text": "后来的"}
            finally:
                tail.terminate()

    def test_a_follower_by_rpc_gets_each_event_once_and_in_order(
        self, home: Home, listener: NotificationListener
    ) -> None:
        listener.call("events/append", event=note("早先的"))
        first = listener.call("events/tail", follow=True, types=["note_taken"])
        assert len(first["events"]) == 1
        offset = first["nextOffset"]
        lines: list[str] = []
        listener.call("events/appendBatch", events=[note(f"第 {number} 条") for number in range(120)])
        listener.call("events/append", event={"type": "memory_fact", "payload": {}})
        home.json("events", "append", json.dumps(note("别的进程的")))
        while len(lines) < 121:
            appended = listener.next("events/appended")
            assert appended["after"] == offset
            assert len(appended["events"]) <= 50
            offset = appended["nextOffset"]
            lines += [event["payload"]["text"] for event in appended["events"]]
        assert lines == [*(f"第 {number} 条" for number in range(120)), "别的进程的"]

    def test_a_second_tail_replaces_the_first_and_unfollow_ends_it(self, listener: NotificationListener) -> None:
        listener.call("events/tail", follow=True)
        listener.call("events/tail", follow=True, types=["memory_fact"])
        listener.call("events/append", event=note("不要的"))
        listener.call("events/append", event={"type": "memory_fact", "payload": {"content": "要的"}})
        assert [event["type"] for event in listener.next("events/appended")["events"]] == ["memory_fact"]
        assert listener.call("events/unfollow") is None
        listener.call("initialize")
        listener.call("events/append", event={"type": "memory_fact", "payload": {"content": "太晚"}})
        listener.next("memory/changed")  # later than a notification of the tail
        assert "events/appended" not in listener.received()

    def test_a_tail_without_follow_gets_no_notification(self, listener: NotificationListener) -> None:
        listener.call("events/tail")
        listener.call("initialize")
        listener.call("events/append", event=note("一"))
        listener.next("memory/changed")
        assert "events/appended" not in listener.received()

    def test_a_command_that_ends_at_once_follows_nothing(self, home: Home) -> None:
        refused = home.run("events", "tail", '{"follow": true}', check=False)
        assert refused.returncode == 2
        assert "--follow" in refused.stderr


class TestUnasked:
    def test_notifications_begin_after_initialize(self, listener: NotificationListener) -> None:
        listener.update("一")
        listener.load(waitMs=0)
        listener.call("sync/status")
        assert listener.received() == []
        listener.call("initialize")
        listener.update("二")
        assert listener.next("memory/changed")["nextOffset"] >= 2

    def test_a_change_of_the_cloud_state_is_notified(self, tmp_path: Path) -> None:
        nobody = {"SUPABASE_URL": "http://127.0.0.1:9", "SUPABASE_KEY": "sb_publishable_x"}
        with NotificationListener(Home(tmp_path / "b", SYNC__POLL_SECONDS="0.3", **nobody)) as ear:
            ear.call("initialize")
            with pytest.raises(CallFailed):
                ear.call("sync/now")
            assert ear.next("sync/statusChanged")["state"] in {"signed_out", "offline"}


class TestWhatDescribesItself:
    def test_config_shows_the_settings_and_never_the_key(self, tmp_path: Path) -> None:
        key = "sb_publishable_do_not_show_me"
        home = Home(tmp_path / "b", SUPABASE_URL="http://127.0.0.1:9", SUPABASE_KEY=key, SYNC__POLL_SECONDS="7")
        shown = home.json("config")
        assert shown["settings"]["supabase_key"] == "set"
        assert shown["settings"]["sync"]["poll_seconds"] == 7
        assert shown["file"] == str(home.data / "config.toml")
        plain = home.run("config")
        assert "XIAOBAI_SYNC__POLL_SECONDS" in plain.stdout
        assert "do_not_show_me" not in plain.stdout + plain.stderr + json.dumps(shown)

    def test_a_client_gets_every_group_of_methods(self, home: Home) -> None:
        with Sidecar(home) as sidecar:
            capabilities = sidecar.call("initialize")["capabilities"]
        assert set(capabilities) == {name.partition("/")[0] for name in METHOD_TABLE if "/" in name}
        assert {"recall", "daily", "insights", "archive", "retention"} <= set(capabilities)

    def test_openrpc_lists_every_method_with_its_parameters(self, home: Home) -> None:
        described = json.loads(home.run("serve", "--openrpc").stdout)
        assert [method["name"] for method in described["methods"]] == [*METHOD_TABLE, "shutdown"]
        assert all(method["summary"] and method["result"]["schema"] is not None for method in described["methods"])
        tail = next(method for method in described["methods"] if method["name"] == "events/tail")
        assert {"project_id", "limit", "follow"} <= {parameter["name"] for parameter in tail["params"]}
        assert not home.data.exists()


def test_events_are_given_by_their_ids_with_what_was_typed_and_without_what_waits_to_be_forgotten(home: Home) -> None:
    home.settings.pop("PRIVACY__STORE_MESSAGES")
    typed, said = "请记住，" + "很长的一句话，" * 20, "好的，" + "我记住了，" * 40
    with Sidecar(home) as sidecar:
        event_id = sidecar.update(typed, said)["eventId"]
        sidecar.call("events/append", event={"type": "note_taken", "event_id": "mine", "payload": {}})
        found = sidecar.call("events/get", eventIds=["mine", event_id, "evt_unknown"])
        assert found["missing"] == ["evt_unknown"]
        note, exchange = found["events"]
        assert note["type"] == "note_taken"
        assert "said" not in note
        assert exchange["said"] == {"question": typed, "answer": said}
        sidecar.call("memory/forget", eventIds=[event_id], undoSeconds=300)
        (hidden,) = sidecar.call("events/get", eventIds=[event_id])["events"]
        assert (hidden["payload"], hidden["said"]) == ({}, None)
        with pytest.raises(CallFailed, match="length <= 200"):
            sidecar.call("events/get", eventIds=["evt_x"] * 201)
