"""What a person can do with the devices of an account, and the dialogue of two of them."""

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.acceptance.environment import (
    Network,
    ServerRows,
    cloud_settings,
    events_of,
    local_rows,
    unique_text,
    wait_for_lines,
    wait_until_reconciled,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar, wait_until


@pytest.fixture
def macbook(tmp_path: Path, local_cloud: Cloud) -> Home:
    return Home(tmp_path / "a", device="device-a", **{**cloud_settings(local_cloud), "DEVICE_NAME": "MacBook"})


@pytest.fixture
def windows(tmp_path: Path, local_cloud: Cloud, network: Network) -> Home:
    """Device B, which reaches the cloud through the network."""
    return Home(
        tmp_path / "b", device="device-b", **{**cloud_settings(local_cloud, network.url), "DEVICE_NAME": "Windows"}
    )


def open_logged_in(home: Home, user: User) -> Sidecar:
    sidecar = Sidecar(home)
    sidecar.log_in(user.email, user.password)
    wait_until_synced(sidecar)
    return sidecar


def today() -> str:
    day = datetime.now(ZoneInfo("Asia/Shanghai"))  # the time zone of these homes
    return f"{day.year}/{day.month}/{day.day}"


def devices_by_id(sidecar: Sidecar) -> dict[str, Any]:
    """The devices of the list by their ids."""
    return {device["deviceId"]: device for device in sidecar.call("devices/list")["devices"]}


class TestTheDialogue:
    def test_b_receives_what_a_recorded_offline_and_a_late_third_device_receives_all(
        self,
        macbook: Home,
        windows: Home,
        tmp_path: Path,
        local_cloud: Cloud,
        user: User,
        server: ServerRows,
        network: Network,
    ) -> None:
        with open_logged_in(macbook, user) as a:
            a.update("设置里，帮我打开自动更新", "好的，自动更新已经打开")
            a.update("今天天气怎么样", "晴", importance=0.3)
            wait_until_synced(a)
            wait_for_lines(macbook, "自动更新", "天气")
            before = macbook.file.read_bytes()
            line = f"【MacBook {today()}】用户问：设置里，帮我打开自动更新"
            with open_logged_in(windows, user) as b:
                loaded = b.call_until("memory/load", lambda memory: line in memory["digest"], waitMs=1000)
                assert loaded["digest"].index("自动更新") < loaded["digest"].index("天气")
                assert line in b.call("memory/systemPrompt")["prompt"]
                b.update("我之前设置过什么？", "你在 MacBook 上设置过自动更新")
                wait_until_synced(b)
            wait_until_reconciled(a)
            assert macbook.file.read_bytes() == before
            a.call("sync/now")  # sends the document at once
            wait_until(lambda: [row["device_id"] for row in server.documents] == ["device-a", "device-b"])
            network.disconnect()
            with Sidecar(windows) as again:
                memory = again.load(waitMs=300)
                assert line in memory["digest"]
                assert "自动更新" not in memory["document"].replace("你在 MacBook 上设置过自动更新", "")
            third = Home(tmp_path / "c", device="device-c", **cloud_settings(local_cloud))
            with open_logged_in(third, user) as c:
                everything = c.call_until(
                    "memory/load", lambda memory: "我之前设置过什么" in memory["digest"], waitMs=1000
                )
                assert {device["name"] for device in everything["devices"]} == {"MacBook", "Windows"}
                assert line in everything["digest"]

    def test_a_preference_of_another_device_comes_first(self, macbook: Home, windows: Home, user: User) -> None:
        with open_logged_in(macbook, user) as a, open_logged_in(windows, user) as b:
            a.update("随便聊聊", importance=1.0)
            wait_for_lines(macbook, "随便聊聊")
            word = unique_text("喜欢")
            text = macbook.file.read_text("utf-8")
            macbook.file.write_text(text.replace("### 工作习惯\n", f"### 工作习惯\n- {word}\n"), "utf-8")
            memory = b.call_until(
                "memory/load", lambda memory: word in memory["digest"] and "随便" in memory["digest"], waitMs=1000
            )
            assert memory["digest"].index(word) < memory["digest"].index("随便聊聊")


class TestList:
    def test_it_shows_every_device_with_its_own_key_and_says_if_no_server_answers(
        self, macbook: Home, windows: Home, user: User, network: Network
    ) -> None:
        with open_logged_in(macbook, user), open_logged_in(windows, user) as b:
            listing = b.call("devices/list")
            assert listing["source"] == "cloud"
            devices = {device["deviceId"]: device for device in listing["devices"]}
            assert {name: device["name"] for name, device in devices.items()} == {
                "device-a": "MacBook",
                "device-b": "Windows",
            }
            assert [device["deviceId"] for device in listing["devices"] if device["thisDevice"]] == ["device-b"]
            keys = {device["publicKey"] for device in devices.values()}
            assert len(keys) == 2
            assert all(key.startswith("ed25519:") for key in keys)
            network.disconnect()
            offline = b.call("devices/list")
            assert (offline["source"], offline["asOf"]) == ("local", listing["asOf"])
            assert offline["devices"] == listing["devices"]

    def test_without_any_cloud_it_shows_this_device(self, tmp_path: Path) -> None:
        listing = Home(tmp_path / "plain", device="device-p").json("devices", "list")
        assert (listing["source"], listing["asOf"]) == ("local", None)
        assert [(device["deviceId"], device["thisDevice"]) for device in listing["devices"]] == [("device-p", True)]

    @pytest.mark.parametrize("left", [b'{"as_of": "2026', b'{"as_of": "\xff"}'], ids=["cut off", "not UTF-8"])
    def test_a_damaged_copy_of_the_list_is_no_copy(self, tmp_path: Path, left: bytes) -> None:
        home = Home(tmp_path / "plain", device="device-p")
        whole = home.json("devices", "list")
        home.database.with_name("devices.json").write_bytes(left)
        assert home.json("devices", "list") == whole

    def test_a_key_stays_over_restarts_and_lies_in_a_private_file_and_nowhere_else(
        self, macbook: Home, user: User, server: ServerRows
    ) -> None:
        open_logged_in(macbook, user).stop()
        (first,) = [row["public_key"] for row in server.devices]
        key_file = next((macbook.data / "profiles").glob("*/device-key"))
        assert key_file.stat().st_mode & 0o077 == 0
        secret = key_file.read_bytes().removeprefix(b"ed25519:")
        holders = [path.name for path in macbook.folder.rglob("*") if path.is_file() and secret in path.read_bytes()]
        assert holders == ["device-key"]
        with Sidecar(macbook) as again:
            again.update("重启之后")
            wait_until_synced(again)
        assert [row["public_key"] for row in server.devices] == [first]


class TestNames:
    def test_a_new_name_reaches_the_labels_of_a_device_that_asks_offline_and_no_restart_undoes_it(
        self, macbook: Home, windows: Home, user: User, network: Network, server: ServerRows
    ) -> None:
        word = unique_text("甲说")
        with open_logged_in(macbook, user) as a, open_logged_in(windows, user) as b:
            a.update(word)
            b.call_until("memory/load", lambda told: word in told["digest"], waitMs=1000)
            renamed = a.call("devices/rename", deviceId="device-a", name="书房的电脑")
            assert {device["name"] for device in renamed["devices"]} >= {"书房的电脑"}
            b.call_until(
                "memory/load", lambda told: f"【书房的电脑 {today()}】用户问：{word}" in told["digest"], waitMs=1000
            )
            network.disconnect()
            assert devices_by_id(b)["device-a"]["name"] == "书房的电脑"
        with Sidecar(macbook) as again:  # registers with its host name again
            again.update("重启之后")
            wait_until_synced(again)
        with Sidecar(windows) as offline:
            assert "【书房的电脑" in offline.load(waitMs=0)["digest"]
        assert [row["name"] for row in server.devices] == ["书房的电脑", "Windows"]

    def test_renaming_an_unknown_device_or_without_a_network_is_refused_and_changes_nothing(
        self, windows: Home, user: User, network: Network
    ) -> None:
        with open_logged_in(windows, user) as b:
            with pytest.raises(CallFailed) as unknown:
                b.call("devices/rename", deviceId="device-x", name="谁")
            assert (unknown.value.kind, "of this account" in str(unknown.value)) == ("device_unknown", True)
            network.disconnect()
            with pytest.raises(CallFailed) as offline:
                b.call("devices/rename", deviceId="device-b", name="新名")
            assert offline.value.kind == "cloud_unavailable"
            assert events_of(b, "device_renamed") == []
            with pytest.raises(CallFailed) as empty:
                b.call("devices/rename", deviceId="device-b", name="   ")
            assert empty.value.kind == "invalid_input"


class TestHiding:
    def test_a_hidden_device_disappears_here_only_without_a_network_and_until_it_is_shown_again(
        self, macbook: Home, windows: Home, user: User, network: Network, server: ServerRows
    ) -> None:
        word = unique_text("甲说")
        with open_logged_in(macbook, user) as a, open_logged_in(windows, user) as b:
            a.update(word)
            b.call_until("memory/load", lambda memory: word in memory["digest"], waitMs=1000)
            network.disconnect()
            assert b.call("devices/hide", deviceId="device-a")["source"] == "local"
            memory = b.load(waitMs=0)
            assert (memory["digest"], memory["devices"]) == ("", [])
        with Sidecar(windows) as again:
            assert again.load(waitMs=0)["digest"] == ""
            assert devices_by_id(again)["device-a"]["hidden"]
            with pytest.raises(CallFailed) as own:
                again.call("devices/hide", deviceId="device-b")
            assert own.value.data["field"] == "deviceId"
            with pytest.raises(CallFailed) as unknown:
                again.call("devices/hide", deviceId="device-x")
            assert unknown.value.kind == "device_unknown"
            network.reconnect()
            again.update("之后")
            wait_until_synced(again)
            assert server.event_ids("device_hidden") == []
            shown = json.loads(windows.run("devices", "show", "device-a", "--json").stdout)
            assert not any(device["hidden"] for device in shown["devices"])
            again.call_until("memory/load", lambda memory: word in memory["digest"], waitMs=0)


class TestRevoking:
    def test_a_lost_device_is_shut_out_for_ever_says_so_in_words_and_goes_on_remembering(
        self, macbook: Home, windows: Home, user: User, server: ServerRows, network: Network
    ) -> None:
        with open_logged_in(macbook, user) as a, open_logged_in(windows, user) as b:
            answer = json.loads(macbook.run("devices", "revoke", "device-b", "--json").stdout)
            assert {device["deviceId"]: device["revoked"] for device in answer["devices"]} == {
                "device-a": False,
                "device-b": True,
            }
            b.update("之后")
            status = b.call_until("sync/status", lambda answer: answer["cloud"]["state"] == "refused")
            assert status["cloud"]["lastError"]["kind"] == "device_revoked"
            assert "revoked" in status["cloud"]["lastError"]["message"]
            assert "XIAOBAI_DEVICE_ID" in status["cloud"]["lastError"]["hint"]

            def loading_asks() -> bool:
                network.clear_requests()
                for _ in range(10):
                    assert "之后" in b.load(waitMs=1000)["document"]
                return bool(network.requests)

            # A load does not ask a server that has refused for good; the loop may ask once if its channel was cut too.
            wait_until(lambda: not loading_asks())
            assert [row["device_id"] for row in server.events if row["type"] == "exchange_recorded"] == []
            a.update("另一台照常")
            wait_until_synced(a)
        with Sidecar(windows) as again:
            with pytest.raises(CallFailed) as refused:
                again.call("sync/now")
            assert refused.value.kind == "device_revoked"
        told_on_a_terminal = windows.run("sync", check=False)
        assert told_on_a_terminal.returncode == 1
        assert "this device was revoked" in told_on_a_terminal.stderr
        assert "本机, 已吊销" in " ".join(windows.run("devices", "list").stdout.split())

    def test_its_key_works_under_no_other_id_and_a_new_data_directory_with_another_id_starts_empty(
        self, macbook: Home, windows: Home, tmp_path: Path, local_cloud: Cloud, user: User, server: ServerRows
    ) -> None:
        with open_logged_in(macbook, user):
            open_logged_in(windows, user).stop()
            macbook.run("devices", "revoke", "device-b")
            windows.settings["DEVICE_ID"] = "device-b2"
            with Sidecar(windows) as other_id:
                other_id.update("换了名字")
                status = other_id.call_until("sync/status", lambda told: told["cloud"]["state"] == "refused")
                assert status["cloud"]["lastError"]["kind"] == "device_revoked"
            fresh = Home(tmp_path / "fresh", device="device-b3", **cloud_settings(local_cloud))
            with open_logged_in(fresh, user) as fresh_sidecar:
                fresh_sidecar.update("从头来")
                wait_until_synced(fresh_sidecar)
        assert [row["device_id"] for row in server.devices] == ["device-a", "device-b", "device-b3"]


class TestCopies:
    def test_a_copied_home_under_another_device_id_makes_a_key_of_its_own(
        self, macbook: Home, tmp_path: Path, local_cloud: Cloud, user: User, server: ServerRows
    ) -> None:
        open_logged_in(macbook, user).stop()
        shutil.copytree(macbook.data, tmp_path / "copy" / "data")
        copy = Home(tmp_path / "copy", device="device-copy", **cloud_settings(local_cloud))
        with Sidecar(macbook) as original, Sidecar(copy) as other:
            original.update("原件说")
            wait_until_synced(original)
            other.update("复件说")
            wait_until(lambda: len({row["public_key"] for row in server.devices} - {None}) == 2)
            wait_until(lambda: len(server.event_ids()) == 2)
        rows_of = {row["device_id"]: row for row in server.devices}
        assert set(rows_of) == {"device-a", "device-copy"}
        assert local_rows(macbook, "select count(*) from replica") == [(1,)]

    def test_a_device_id_named_by_the_app_is_introduced_and_gets_its_own_key(
        self, tmp_path: Path, local_cloud: Cloud, user: User, server: ServerRows
    ) -> None:
        home = Home(tmp_path / "app", **cloud_settings(local_cloud))
        del home.settings["DEVICE_ID"]
        with open_logged_in(home, user) as sidecar:
            sidecar.update("认出之前")
            wait_until_synced(sidecar)
            assert sidecar.call("initialize", deviceId="3741deb7-cf0d-57b7-9fcd-472816e7c576")["deviceId"].startswith(
                "3741"
            )
            sidecar.update("认出之后")
            wait_until_synced(sidecar)
            wait_until(lambda: len(server.event_ids("device_registered")) == 2)
            keys = {row["device_id"]: row["public_key"] for row in server.devices}
            assert len(keys) == 2
            assert len(set(keys.values())) == 2

    def test_what_was_said_before_the_app_named_it_is_still_its_own(self, tmp_path: Path) -> None:
        home = Home(tmp_path / "app")
        del home.settings["DEVICE_ID"]
        home.run("update", "团子怎么做才软", "好")
        with Sidecar(home) as sidecar:
            sidecar.call("initialize", deviceId="electron-1")
            memory = sidecar.load()
            assert (memory["digest"], memory["content"].count("团子")) == ("", 1)
            assert "其他设备" not in sidecar.call("recall/context", query="团子")["context"]
            wait_for_lines(home, "团子")
        with Sidecar(home) as again:
            first = again.load()
            assert (first["digest"], first["content"].count("团子")) == ("", 1)
