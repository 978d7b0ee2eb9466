"""What was acknowledged is there: after kill -9, without a network, with lost answers; once, never twice."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.environment import (
    Network,
    ServerRows,
    cloud_settings,
    exchanges,
    integrity,
    local_rows,
    question_counts,
    wait_for_lines,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar, wait_until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


@pytest.fixture
def cloud_home(tmp_path: Path, local_cloud: Cloud, network: Network) -> Home:
    """A home that reaches the cloud through the network."""
    return Home(tmp_path / "a", **cloud_settings(local_cloud, network.url))


class TestKilled:
    def test_right_after_the_last_of_thirty_acknowledged_updates_nothing_is_lost_or_doubled(self, home: Home) -> None:
        sidecar = Sidecar(home)
        acknowledged = [sidecar.update(f"问题 {number}")["eventId"] for number in range(30)]
        sidecar.kill()
        with Sidecar(home) as again:
            assert [event["event_id"] for event in exchanges(again)] == acknowledged
            assert question_counts(again.load()["document"]) == {f"问题 {number}": 1 for number in range(30)}
            wait_for_lines(home, "问题 29")
            assert question_counts(home.file.read_text("utf-8")) == {f"问题 {number}": 1 for number in range(30)}
        assert integrity(home) == "ok"

    @pytest.mark.parametrize("answers", [1, 7, 19])
    def test_in_a_stream_of_updates_what_was_answered_is_there_and_the_rest_can_be_sent_again(
        self, home: Home, answers: int
    ) -> None:
        sidecar = Sidecar(home)
        numbers = [
            sidecar.send("memory/update", userMessage=f"问题 {n}", aiResponse="好", idempotencyKey=f"key {n}")
            for n in range(40)
        ]
        acknowledged = [sidecar.wait_for_response(number)["eventId"] for number in numbers[:answers]]
        sidecar.kill()
        with Sidecar(home) as again:
            survived = [event["event_id"] for event in exchanges(again)]
            assert set(acknowledged) <= set(survived)
            assert len(survived) == len(set(survived))
            for n in range(40):
                again.update(f"问题 {n}", "好", idempotencyKey=f"key {n}")
            assert question_counts(again.load()["document"]) == {f"问题 {n}": 1 for n in range(40)}
            assert len(exchanges(again)) == 40

    def test_with_a_hand_edit_in_the_file_the_edit_is_found_at_the_next_start(self, home: Home) -> None:
        sidecar = Sidecar(home)
        sidecar.update("一")
        wait_for_lines(home, "用户问：一")
        sidecar.kill()
        text = home.file.read_text("utf-8").replace("### 工作习惯\n", "### 工作习惯\n- 关机时写的\n")
        home.file.write_text(text, "utf-8")
        with Sidecar(home) as again:
            assert "- 关机时写的" in again.load()["document"]
            assert home.file.read_text("utf-8") == text

    def test_every_event_has_its_delivery_and_numbers_without_a_gap(self, home: Home) -> None:
        for turn in range(3):
            sidecar = Sidecar(home)
            for number in range(5):
                sidecar.update(f"第 {turn} 次 {number}")
            sidecar.kill()
        assert local_rows(home, "select count(*) from events")[0][0] == 15
        assert local_rows(home, "select count(*) from deliveries where state = 'pending'")[0][0] == 15
        assert [row[0] for row in local_rows(home, "select replica_seq from events order by position")] == list(
            range(1, 16)
        )

    def test_the_lock_of_a_killed_sidecar_is_free(self, home: Home) -> None:
        Sidecar(home).kill()
        with Sidecar(home) as again:
            assert again.call("sync/status")["sidecar"] is True


class TestLeaving:
    def test_end_of_input_with_updates_in_flight_loses_none_that_was_answered(self, home: Home) -> None:
        sidecar = Sidecar(home)
        sidecar.call("sync/status")  # it is open: it has two seconds for leaving, and no start to share them with
        numbers = [sidecar.send("memory/update", userMessage=f"问题 {n}", aiResponse="好") for n in range(10)]
        assert sidecar.stop() == 0
        answered = set()
        for number in numbers:
            with suppress(CallFailed):  # a slow machine has no time for all of them
                answered.add(sidecar.wait_for_response(number)["eventId"])
        assert answered
        with Sidecar(home) as again:
            recorded = [event["event_id"] for event in exchanges(again)]
        assert answered <= set(recorded)
        assert len(set(recorded)) == len(recorded) <= len(numbers)

    def test_what_was_acknowledged_is_in_the_file_when_the_sidecar_has_left(self, home: Home) -> None:
        with Sidecar(home) as sidecar:
            sidecar.call("sync/status")  # it is open, as above
            sidecar.update("临走一句")
        assert question_counts(home.file.read_text("utf-8")) == {"临走一句": 1}

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_ends_it_in_good_order(self, home: Home, number: signal.Signals) -> None:
        sidecar = Sidecar(home)
        sidecar.call("sync/status")  # it is open, as above
        sidecar.update("一")
        os.kill(sidecar.process.pid, number)
        assert sidecar.process.wait(10) == 0
        assert question_counts(home.file.read_text("utf-8")) == {"一": 1}


class TestWithoutNetwork:
    def test_twenty_updates_are_acknowledged_and_arrive_exactly_once_when_it_returns(
        self, cloud_home: Home, local_cloud: Cloud, network: Network, new_user: Callable[[], User]
    ) -> None:
        user = new_user()
        with Sidecar(cloud_home) as sidecar:
            sidecar.log_in(user.email, user.password)
            wait_until_synced(sidecar)
            network.disconnect()
            acknowledged = [sidecar.update(f"离线 {number}")["eventId"] for number in range(20)]
            status = sidecar.call("sync/status")
            assert status["pending"] == 20
            assert ServerRows(local_cloud, user.user_id).event_ids() == []
            sidecar.call_until("sync/status", lambda told: told["cloud"]["state"] == "offline")
            network.reconnect()
            wait_until_synced(sidecar)
        assert ServerRows(local_cloud, user.user_id).event_ids() == acknowledged

    def test_load_answers_although_the_cloud_hangs_half_open(
        self, cloud_home: Home, local_cloud: Cloud, network: Network, new_user: Callable[[], User]
    ) -> None:
        user = new_user()
        cloud_home.settings["SYNC__REALTIME"] = "false"  # a joined channel proves freshness for a while
        with Sidecar(cloud_home) as sidecar:
            sidecar.log_in(user.email, user.password)
            sidecar.update("之前")
            wait_until_synced(sidecar)
            network.half_open()
            sidecar.update("之后")
            assert question_counts(sidecar.load(waitMs=150)["document"]) == {"之前": 1, "之后": 1}
            # an answer of before may still have been on its way
            sidecar.call_until(
                "memory/load", lambda told: (told["source"], told["stale"]) == ("local", True), waitMs=150
            )
            assert sidecar.load(waitMs=0)["source"] == "local"
            network.reconnect()
            wait_until_synced(sidecar)
        assert len(ServerRows(local_cloud, user.user_id).event_ids()) == 2

    def test_a_sidecar_that_is_killed_offline_sends_everything_after_its_next_start(
        self, cloud_home: Home, local_cloud: Cloud, network: Network, new_user: Callable[[], User]
    ) -> None:
        user = new_user()
        sidecar = Sidecar(cloud_home)
        sidecar.log_in(user.email, user.password)
        network.disconnect()
        acknowledged = [sidecar.update(f"离线 {number}")["eventId"] for number in range(5)]
        sidecar.kill()
        network.reconnect()
        with Sidecar(cloud_home) as again:
            wait_until_synced(again)
            wait_until(lambda: ServerRows(local_cloud, user.user_id).event_ids() == acknowledged)

    def test_committed_but_the_answer_lost_is_sent_again_and_not_doubled(
        self, cloud_home: Home, local_cloud: Cloud, network: Network, new_user: Callable[[], User]
    ) -> None:
        user = new_user()
        with Sidecar(cloud_home) as sidecar:
            sidecar.log_in(user.email, user.password)
            wait_until_synced(sidecar)
            network.drop_responses(2, matching="ai_memory_sync")
            acknowledged = [sidecar.update(f"问题 {number}")["eventId"] for number in range(3)]
            wait_until_synced(sidecar)
            assert ServerRows(local_cloud, user.user_id).event_ids() == acknowledged

    def test_an_answer_that_is_not_the_server_s_is_never_an_acknowledgement(
        self, cloud_home: Home, network: Network, new_user: Callable[[], User]
    ) -> None:
        user = new_user()
        with Sidecar(cloud_home) as sidecar:
            sidecar.log_in(user.email, user.password)
            wait_until_synced(sidecar)
            for status, body, kind in (
                (200, b"<html>please log in to the hotel's network</html>", "text/html"),
                (200, b'{"epoch": "x", "head": ', "application/json"),
                (200, b"[]", "application/json"),
                (503, b"{}", "application/json"),
            ):
                network.respond_with(status, body, content_type=kind)
                sidecar.update("一")
                told = sidecar.call_until("sync/status", lambda told: told["cloud"]["state"] == "offline")
                assert told["pending"] == 1, body
                assert told["cloud"]["lastError"]["kind"] == "cloud_unavailable"
                assert sidecar.load()["stale"] is True
                network.reconnect()
                wait_until_synced(sidecar)
