"""Several devices of one account, sessions that outlive a restart, and where `load` says its words come from."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.acceptance.environment import (
    Network,
    ServerRows,
    cloud_settings,
    events_of,
    exchanges,
    question_counts,
    unique_text,
    wait_for_lines,
    wait_until_reconciled,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar, wait_until


@pytest.fixture
def home_a(tmp_path: Path, local_cloud: Cloud, network: Network) -> Home:
    """Device A, which reaches the cloud through the network."""
    return Home(tmp_path / "a", device="device-a", **cloud_settings(local_cloud, network.url))


@pytest.fixture
def home_b(tmp_path: Path, local_cloud: Cloud) -> Home:
    return Home(tmp_path / "b", device="device-b", **cloud_settings(local_cloud))


def open_logged_in(home: Home, user: User) -> Sidecar:
    sidecar = Sidecar(home)
    sidecar.log_in(user.email, user.password)
    wait_until_synced(sidecar)
    return sidecar


def session_file(home: Home) -> Path:
    return next((home.data / "profiles").glob("*/session.json"))


def spoil_session(home: Home, **changes: Any) -> None:
    """What time, or an administrator, does to a session that is kept."""
    path = session_file(home)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def assert_no_anonymous_requests(network: Network, cloud: Cloud) -> None:
    """No request for data may go out under the app's key: the server would answer it with an empty list."""
    for line, headers in network.requests:
        if "/auth/v1/token" in line or "/realtime/v1/websocket" in line:
            continue  # signing in or refreshing: no user yet; a channel receives nothing before it names its user
        token = headers.get("authorization", "")
        assert token.startswith("Bearer "), line
        assert cloud.publishable_key not in token, line


class TestTwoDevices:
    def test_what_a_remembers_is_in_b_s_digest_under_its_name_and_in_no_other_file(
        self, home_a: Home, home_b: Home, user: User
    ) -> None:
        with open_logged_in(home_a, user) as a, open_logged_in(home_b, user) as b:
            word_a, word_b = unique_text("甲说"), unique_text("乙说")
            a.update(word_a)
            b.update(word_b)
            loaded = b.call_until("memory/load", lambda told: word_a in told["digest"], waitMs=1000)
            (device,) = loaded["devices"]
            assert (device["deviceId"], device["name"]) == ("device-a", "name of device-a")
            assert "name of device-a" in loaded["digest"]
            assert word_a in loaded["content"]
            assert question_counts(loaded["document"]) == {word_b: 1}
            assert b.load(scope="device")["digest"] == ""
            a.call_until("memory/load", lambda told: word_b in told["digest"], waitMs=1000)
            wait_for_lines(home_a, word_a)
            wait_for_lines(home_b, word_b)
            for sidecar in (a, b):
                wait_until_reconciled(sidecar)
            assert word_b not in home_a.file.read_text("utf-8")
            assert word_a not in home_b.file.read_text("utf-8")

    def test_a_hand_edit_on_a_and_its_removal_reach_b(self, home_a: Home, home_b: Home, user: User) -> None:
        with open_logged_in(home_a, user) as a, open_logged_in(home_b, user) as b:
            a.update("旧的")
            wait_for_lines(home_a, "旧的")
            word = unique_text("手写")
            text = home_a.file.read_text("utf-8")
            home_a.file.write_text(text.replace("### 工作习惯\n", f"### 工作习惯\n- {word}\n"), "utf-8")
            b.call_until("memory/load", lambda told: word in told["digest"], waitMs=1000)
            home_a.file.write_text(text, "utf-8")
            b.call_until("memory/load", lambda told: word not in told["digest"], waitMs=1000)

    def test_the_digest_can_be_switched_off(self, home_a: Home, tmp_path: Path, local_cloud: Cloud, user: User) -> None:
        off = Home(tmp_path / "b", device="device-b", LOAD__OTHER_DEVICES="off", **cloud_settings(local_cloud))
        with open_logged_in(home_a, user) as a, open_logged_in(off, user) as b:
            a.update("甲说")
            b.call_until("events/read", lambda page: "甲说" in json.dumps(page, ensure_ascii=False))
            loaded = b.load(waitMs=1000)
            assert (loaded["digest"], loaded["devices"]) == ("", [])

    def test_both_hold_the_same_events_when_all_is_quiet(self, home_a: Home, home_b: Home, user: User) -> None:
        with open_logged_in(home_a, user) as a, open_logged_in(home_b, user) as b:
            for number in range(10):
                a.update(f"甲 {number}")
                b.update(f"乙 {number}")
            wait_until_synced(a)
            wait_until_synced(b)
            wait_until(lambda: len(exchanges(a)) == len(exchanges(b)) == 20)
            assert {event["event_id"] for event in events_of(a)} == {event["event_id"] for event in events_of(b)}

    def test_each_device_keeps_a_row_of_its_own_on_the_server(
        self, home_a: Home, home_b: Home, user: User, server: ServerRows
    ) -> None:
        with open_logged_in(home_a, user) as a, open_logged_in(home_b, user) as b:
            a.update("甲说")
            b.update("乙说")
            for sidecar in (a, b):
                sidecar.call("sync/now")
            wait_until(
                lambda: [question_counts(row["content"]) for row in server.documents] == [{"甲说": 1}, {"乙说": 1}]
            )
            assert [row["device_id"] for row in server.documents] == ["device-a", "device-b"]
            assert [row["name"] for row in server.devices] == ["name of device-a", "name of device-b"]


class TestAccount:
    def test_a_login_outlives_a_restart(self, home_a: Home, user: User, server: ServerRows) -> None:
        open_logged_in(home_a, user).stop()
        with Sidecar(home_a) as again:
            assert again.call("auth/status")["account"] == {
                "state": "logged_in",
                "userId": user.user_id,
                "label": user.email,
            }
            again.update("重启之后")
            wait_until_synced(again)
        assert len(server.event_ids()) == 1

    def test_the_tokens_are_in_a_private_file_and_nowhere_else(self, home_a: Home, user: User) -> None:
        sidecar = open_logged_in(home_a, user)
        warnings = sidecar.call("sync/status")["document"]["warnings"]
        assert not [text for text in warnings if "keychain" in text], "who chose a file is not warned of one"
        sidecar.stop()
        session = json.loads(session_file(home_a).read_text())
        assert session_file(home_a).stat().st_mode & 0o077 == 0
        for secret in (session["access_token"], session["refresh_token"], user.password):
            holders = [path.name for path in home_a.folder.rglob("*") if path.is_file() and secret in _text(path)]
            assert holders == ([] if secret == user.password else ["session.json"])

    def test_what_a_guest_recorded_is_claimed_by_the_first_login_with_the_same_ids(
        self, home_a: Home, user: User, server: ServerRows
    ) -> None:
        with Sidecar(home_a) as sidecar:
            recorded = [sidecar.update(f"访客 {number}")["eventId"] for number in range(5)]
            assert sidecar.call("auth/status")["account"]["state"] == "guest"
            assert sidecar.call("sync/status")["pending"] == 5
            sidecar.log_in(user.email, user.password)
            wait_until_synced(sidecar)
            assert [event["event_id"] for event in exchanges(sidecar)] == recorded
            assert question_counts(sidecar.load()["document"]) == {f"访客 {number}": 1 for number in range(5)}
        assert server.event_ids() == recorded

    def test_logging_out_keeps_the_memory_and_sends_nothing_more(
        self, home_a: Home, user: User, server: ServerRows, network: Network, local_cloud: Cloud
    ) -> None:
        with open_logged_in(home_a, user) as sidecar:
            sidecar.update("登录时")
            wait_until_synced(sidecar)
            assert sidecar.call("auth/logout")["account"]["state"] == "logged_out"
            assert not list((home_a.data / "profiles").glob("*/session.json"))
            sidecar.update("退出后")
            loaded = sidecar.load(waitMs=500)
            assert question_counts(loaded["document"]) == {"登录时": 1, "退出后": 1}
            assert loaded["source"] == "local"
            assert sidecar.call("sync/status")["cloud"]["state"] == "signed_out"
            assert len(server.event_ids()) == 1
            sidecar.log_in(user.email, user.password)
            wait_until_synced(sidecar)
            assert len(server.event_ids()) == 2
        assert_no_anonymous_requests(network, local_cloud)

    def test_a_login_through_the_command_line_is_used_by_a_running_sidecar(
        self, home_a: Home, user: User, server: ServerRows
    ) -> None:
        with Sidecar(home_a) as sidecar:
            sidecar.update("先说的")
            home_a.run("login", user.email, "--password-stdin", stdin=f"{user.password}\n")
            wait_until_synced(sidecar)
        assert len(server.event_ids()) == 1


class TestExpiredSessions:
    def test_an_offline_start_with_an_expired_session_serves_and_sends_no_anonymous_request(
        self, home_a: Home, user: User, server: ServerRows, network: Network, local_cloud: Cloud
    ) -> None:
        with open_logged_in(home_a, user) as first:
            first.update("之前")
            wait_until_synced(first)
        spoil_session(home_a, expires_at=1.0)
        network.disconnect()
        network.clear_requests()
        with Sidecar(home_a) as sidecar:
            loaded = sidecar.load(waitMs=300)
            assert (loaded["source"], loaded["stale"]) == ("local", True)
            assert question_counts(loaded["document"]) == {"之前": 1}
            sidecar.update("离线")
            assert sidecar.call("auth/status")["account"]["state"] == "logged_in"
            network.reconnect()
            wait_until_synced(sidecar)
        assert len(server.event_ids()) == 2
        assert any("grant_type=refresh_token" in line for line, _ in network.requests)
        assert_no_anonymous_requests(network, local_cloud)

    def test_one_that_the_server_has_ended_asks_for_a_login_and_empties_nothing(
        self, home_a: Home, user: User, server: ServerRows, network: Network, local_cloud: Cloud
    ) -> None:
        with open_logged_in(home_a, user) as first:
            first.update("之前")
            wait_until_synced(first)
        spoil_session(home_a, expires_at=1.0, refresh_token="ended")
        network.clear_requests()
        with Sidecar(home_a) as sidecar:
            sidecar.call_until("sync/status", lambda told: told["cloud"]["state"] == "signed_out")
            assert sidecar.call("auth/status")["account"]["state"] == "logged_out"
            sidecar.update("之后")
            assert question_counts(sidecar.load(waitMs=300)["document"]) == {"之前": 1, "之后": 1}
            with pytest.raises(CallFailed) as asked:
                sidecar.call("sync/now")
            assert asked.value.kind == "login_required"
            assert [line for line, _ in network.requests if "/rest/" in line] == []
            sidecar.log_in(user.email, user.password)
            wait_until_synced(sidecar)
        assert len(server.event_ids()) == 2
        assert_no_anonymous_requests(network, local_cloud)

    def test_a_token_that_the_server_refuses_is_refreshed_once(
        self, home_a: Home, user: User, network: Network, local_cloud: Cloud
    ) -> None:
        open_logged_in(home_a, user).stop()
        access = json.loads(session_file(home_a).read_text())["access_token"]
        spoil_session(home_a, access_token=access[:-6] + "AAAAAA")
        network.clear_requests()
        with Sidecar(home_a) as sidecar:
            sidecar.update("一")
            wait_until_synced(sidecar)
        assert sum("grant_type=refresh_token" in line for line, _ in network.requests) == 1
        assert_no_anonymous_requests(network, local_cloud)

    def test_an_answer_to_a_refresh_that_was_lost_on_the_way_costs_no_login(
        self, home_a: Home, user: User, network: Network, local_cloud: Cloud
    ) -> None:
        open_logged_in(home_a, user).stop()
        used_up = json.loads(session_file(home_a).read_text())["refresh_token"]
        spoil_session(home_a, expires_at=1.0)
        network.clear_requests()
        network.drop_responses(1, matching="grant_type=refresh_token")
        with Sidecar(home_a) as sidecar:
            sidecar.update("一")
            wait_until_synced(sidecar)
            assert sidecar.call("auth/status")["account"]["state"] == "logged_in"
        assert sum("grant_type=refresh_token" in line for line, _ in network.requests) == 2
        assert json.loads(session_file(home_a).read_text())["refresh_token"] != used_up
        assert_no_anonymous_requests(network, local_cloud)

    @pytest.mark.parametrize("left", [b'{"user_id": "half', b'{"user_id": "\xff"}'], ids=["cut off", "not UTF-8"])
    def test_a_damaged_session_file_asks_for_a_login_and_keeps_the_memory(
        self, home_a: Home, user: User, left: bytes
    ) -> None:
        with open_logged_in(home_a, user) as first:
            first.update("之前")
            wait_until_synced(first)
        session_file(home_a).write_bytes(left)
        assert home_a.json("status")["account"]["state"] == "logged_out"
        assert all(check["ok"] is not False for check in home_a.json("doctor")["checks"])
        with Sidecar(home_a) as sidecar:
            assert sidecar.call("auth/status")["account"]["state"] == "logged_out"
            assert question_counts(sidecar.load()["document"]) == {"之前": 1}


class TestSources:
    def test_template_then_local_without_a_cloud(self, tmp_path: Path) -> None:
        with Sidecar(Home(tmp_path / "plain")) as sidecar:
            first = sidecar.load()
            assert (first["source"], first["stale"]) == ("template", False)
            assert "## 用户偏好" in first["document"]
            sidecar.update("一")
            then = sidecar.load()
            assert (then["source"], then["stale"]) == ("local", False)

    def test_the_source_is_cloud_if_the_server_answers_and_stale_if_not(
        self, home_a: Home, user: User, network: Network
    ) -> None:
        with open_logged_in(home_a, user) as sidecar:
            sidecar.update("一")
            wait_until_synced(sidecar)
            wait_for_lines(home_a, "用户问：一")  # writing it gives the document a label of its own
            answered = sidecar.load(waitMs=5000)
            assert (answered["source"], answered["stale"]) == ("cloud", False)
            network.disconnect()
            alone = sidecar.load(waitMs=1000)
            assert (alone["source"], alone["stale"]) == ("local", True)
            assert alone["document"] == answered["document"]
            network.reconnect()
            sidecar.call_until("memory/load", lambda told: told["source"] == "cloud", waitMs=1000)

    def test_an_empty_cloud_overwrites_nothing(self, home_a: Home, user: User, server: ServerRows) -> None:
        with Sidecar(home_a) as sidecar:
            sidecar.update("访客说")
            wait_for_lines(home_a, "访客说")
            assert server.events == []
            sidecar.log_in(user.email, user.password)
            answered = sidecar.load(waitMs=5000)
            assert question_counts(answered["document"]) == {"访客说": 1}
            wait_until_synced(sidecar)
            assert question_counts(home_a.file.read_text("utf-8")) == {"访客说": 1}


class TestTheServerChanges:
    def test_what_a_restored_server_has_forgotten_is_sent_again(
        self, home_a: Home, user: User, server: ServerRows, local_cloud: Cloud
    ) -> None:
        with open_logged_in(home_a, user) as sidecar:
            recorded = [sidecar.update(f"问题 {number}")["eventId"] for number in range(6)]
            wait_until_synced(sidecar)
            with psycopg.connect(local_cloud.database_url) as database:
                database.execute("delete from public.ai_memory_events where user_id = %s and seq > 3", [user.user_id])
                database.execute("update public.ai_memory_heads set seq = 3 where user_id = %s", [user.user_id])
            sidecar.call("sync/now")
            wait_until(lambda: sorted(server.event_ids()) == sorted(recorded))
            assert [row["seq"] for row in server.events] == list(range(1, len(server.events) + 1))
            assert [event["event_id"] for event in exchanges(sidecar)] == recorded

    def test_a_revoked_device_goes_on_remembering_and_says_that_it_is_refused(
        self, home_a: Home, user: User, server: ServerRows, local_cloud: Cloud
    ) -> None:
        with open_logged_in(home_a, user) as sidecar:
            with psycopg.connect(local_cloud.database_url) as database:
                database.execute(
                    "update public.ai_memory_devices set revoked_at = now() where user_id = %s", [user.user_id]
                )
            sidecar.update("之后")
            status = sidecar.call_until("sync/status", lambda status: status["cloud"]["state"] == "refused")
            assert status["cloud"]["lastError"]["kind"] == "device_revoked"
            assert status["pending"] == 1
            assert question_counts(sidecar.load(waitMs=300)["document"]) == {"之后": 1}
            assert server.event_ids() == []


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")
