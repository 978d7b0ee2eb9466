"""A change on one device is soon in another's load although it polls once an hour: realtime pokes it."""

import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.acceptance.environment import Network, cloud_settings, unique_text, wait_for_lines, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, wait_until

ONCE_AN_HOUR = {"SYNC__POLL_SECONDS": "3600"}


@pytest.fixture
def home_a(tmp_path: Path, local_cloud: Cloud) -> Home:
    return Home(tmp_path / "a", device="device-a", **{**cloud_settings(local_cloud), **ONCE_AN_HOUR})


@pytest.fixture
def home_b(tmp_path: Path, local_cloud: Cloud, network: Network) -> Home:
    """Device B, which reaches the cloud through the network."""
    return Home(tmp_path / "b", device="device-b", **{**cloud_settings(local_cloud, network.url), **ONCE_AN_HOUR})


@pytest.fixture(autouse=True)
def seen_elsewhere(user: User, local_cloud: Cloud) -> None:
    """Another device of the account: a device that is alone opens no channel."""
    with psycopg.connect(local_cloud.database_url, autocommit=True) as connection:
        connection.execute(
            "insert into public.ai_memory_devices (user_id, device_id) values (%s, 'elsewhere')", [user.user_id]
        )


def open_listening_device(home: Home, user: User) -> Sidecar:
    """A device that has joined its channel and has stopped polling."""
    sidecar = Sidecar(home)
    sidecar.log_in(user.email, user.password)
    sidecar.update("今天的安排")  # with nothing to show, a load's source is the template
    wait_until_synced(sidecar)
    wait_until_joined(sidecar)
    wait_for_fresh_load(sidecar)
    return sidecar


def wait_until_joined(sidecar: Sidecar) -> Any:
    return sidecar.call_until("sync/status", lambda status: status["cloud"]["realtime"] == "joined")


def wait_for_fresh_load(sidecar: Sidecar) -> Any:
    """Wait for a load that sends no request and still knows that it is in sync."""
    return sidecar.call_until("memory/load", lambda told: told["source"] == "cloud", waitMs=0)


def wait_for_word(sidecar: Sidecar, word: str) -> Any:
    """Wait until a load that sends no request shows the word."""
    return sidecar.call_until("memory/load", lambda told: word in told["digest"], waitMs=0)


def test_an_update_on_one_device_is_soon_in_the_other_s_load(home_a: Home, home_b: Home, user: User) -> None:
    with open_listening_device(home_a, user) as a, open_listening_device(home_b, user) as b:
        took = []
        for number in range(10):
            word = unique_text(f"消息{number}")
            begun = time.monotonic()
            a.update(word)
            wait_for_word(b, word)
            took.append(time.monotonic() - begun)
        took.sort()
        print(f"\nupdate on A to load on B: median {took[5] * 1e3:.0f} ms, worst {took[-1] * 1e3:.0f} ms")
        back = unique_text("回答")
        b.update(back)
        wait_for_word(a, back)


def test_an_edit_by_hand_is_soon_in_the_other_s_load(home_a: Home, home_b: Home, user: User) -> None:
    with open_listening_device(home_a, user), open_listening_device(home_b, user) as b:
        wait_for_lines(home_a, "今天的安排")
        word = unique_text("喜欢")
        text = home_a.file.read_text("utf-8")
        begun = time.monotonic()
        home_a.file.write_text(text.replace("## 用户偏好\n", f"## 用户偏好\n\n- {word}\n", 1), "utf-8")
        wait_for_word(b, word)
        print(f"\nedit on A to load on B: {(time.monotonic() - begun) * 1e3:.0f} ms")


def test_without_realtime_nothing_pokes_and_a_load_asks(home_a: Home, home_b: Home, user: User) -> None:
    """Without this the tests above would pass on a sidecar that polls."""
    home_b.settings["SYNC__REALTIME"] = "false"
    with open_listening_device(home_a, user) as a, Sidecar(home_b) as b:

        def unheard() -> str:
            """Put a word of A's on the server but not on B; return None if B polled just then."""
            word = unique_text("消息")
            a.update(word)
            wait_until_synced(a)
            quiet = b.load(waitMs=0)
            return word if (quiet["source"], word in quiet["digest"]) == ("local", False) else ""

        b.log_in(user.email, user.password)
        b.update("今天的安排")
        assert wait_until_synced(b)["cloud"]["realtime"] == "off"
        word = wait_until(unheard)
        b.call_until("memory/load", lambda told: word in told["digest"], waitMs=5000)


def test_a_load_without_time_sends_no_request_and_one_with_time_does(
    home_b: Home, user: User, network: Network
) -> None:
    with open_listening_device(home_b, user) as b:
        wait_until_synced(b)

        def asked_by(loads: int, wait_ms: int) -> int:
            wait_for_fresh_load(b)
            network.clear_requests()
            for _ in range(loads):
                assert b.load(waitMs=wait_ms)["source"] == "cloud"
            return sum("ai_memory_sync" in line for line, _ in network.requests)

        wait_until(lambda: asked_by(20, wait_ms=150) == 0)  # repeat if the sidecar polled just then
        wait_until(lambda: asked_by(1, wait_ms=5000) == 1)


def test_a_cut_is_noticed_at_once_and_what_it_hid_is_there_after_it(
    home_a: Home, home_b: Home, user: User, network: Network
) -> None:
    with open_listening_device(home_a, user) as a, open_listening_device(home_b, user) as b:
        network.disconnect()
        b.call_until("sync/status", lambda status: status["cloud"]["realtime"] == "connecting")
        b.call_until("memory/load", lambda told: (told["source"], told["stale"]) == ("local", True), waitMs=0)
        word = unique_text("消息")
        a.update(word)
        wait_until_synced(a)
        network.reconnect()
        wait_for_word(b, word)
        wait_until_joined(b)
        wait_for_fresh_load(b)


def test_the_app_is_notified_that_memory_and_status_have_changed(
    home_a: Home, home_b: Home, user: User, network: Network
) -> None:
    with open_listening_device(home_a, user) as a, open_listening_device(home_b, user) as b:
        b.call("initialize")
        a.update(unique_text("消息"))
        wait_until(lambda: notifications_of(b, "memory/changed"))
        network.disconnect()
        wait_until(lambda: "connecting" in [params["realtime"] for params in notifications_of(b, "sync/statusChanged")])
        network.reconnect()
        wait_until(lambda: notifications_of(b, "sync/statusChanged")[-1]["realtime"] == "joined")


def notifications_of(sidecar: Sidecar, method: str) -> list[Any]:
    return [params for name, params in sidecar.notifications if name == method]


def test_a_revoked_session_ends_the_channel(home_a: Home, user: User, local_cloud: Cloud, network: Network) -> None:
    home_a.settings["SUPABASE_URL"] = network.url
    with open_listening_device(home_a, user) as a:
        with psycopg.connect(local_cloud.database_url, autocommit=True) as connection:
            for table in ("sessions", "refresh_tokens"):
                connection.execute(f"delete from auth.{table} where user_id::text = %s".encode(), [user.user_id])
        session = next((home_a.data / "profiles").glob("*/session.json"))
        session.write_text(session.read_text().replace('"expires_at":1', '"expires_at":0.1'))
        network.disconnect()
        network.reconnect()
        a.call_until("sync/status", lambda status: status["cloud"]["realtime"] == "off")
        assert a.load()["source"] == "local"
