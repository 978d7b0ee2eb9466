"""Log in by phone and code, as the app's users do, with the real CLI, RPC and login server."""

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.environment import Network, ServerRows, cloud_settings, files_below, wait_until_synced
from tests.cloud.fixtures import Cloud
from tests.contract.cloud_backends import new_number
from tests.sidecar import COMMAND, REPOSITORY, CallFailed, Home, Sidecar, wait_until

DISPLAYED = "+86 {}-{}-{}"  # as an address book shows a number


def as_people_write_it(number: str) -> str:
    return DISPLAYED.format(number[3:6], number[6:10], number[10:])


def masked(number: str) -> str:
    return f"{number[3:6]}****{number[-4:]}"


def other_code(code: str) -> str:
    return f"{(int(code) + 1) % 10**6:06}"


def log_in(sidecar: Sidecar, cloud: Cloud, number: str) -> Any:
    sidecar.call("auth/start", phone=number)
    return sidecar.call("auth/verify", phone=number, code=cloud.code_sent_to(number))["account"]


def refused(sidecar: Sidecar, method: str, **params: Any) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        sidecar.call(method, **params)
    assert caught.value.data["hint"]
    return caught.value


@pytest.fixture
def home(tmp_path: Path, local_cloud: Cloud) -> Home:
    return Home(tmp_path / "a", **cloud_settings(local_cloud))


class TestOverStdio:
    def test_a_guest_logs_in_with_a_phone_and_the_updates_reach_the_server_with_their_ids(
        self, home: Home, local_cloud: Cloud
    ) -> None:
        number = new_number()
        with Sidecar(home) as sidecar:
            ids = [sidecar.update("登录之前")["eventId"]]
            sent = sidecar.call("auth/start", phone=as_people_write_it(number))
            assert sent == {"contact": masked(number), "resendAfterSeconds": 60}
            code = local_cloud.code_sent_to(number)
            assert refused(sidecar, "auth/verify", phone=number, code=other_code(code)).kind == "code_refused"
            assert sidecar.call("auth/status")["account"]["state"] == "guest"
            account = sidecar.call("auth/verify", phone=number[3:], code=code)["account"]
            assert (account["state"], account["label"]) == ("logged_in", masked(number))
            ids.append(sidecar.update("登录之后")["eventId"])
            wait_until_synced(sidecar)
        assert ServerRows(local_cloud, account["userId"]).event_ids() == ids

    def test_an_address_and_its_code_log_in_as_well(self, home: Home, local_cloud: Cloud) -> None:
        address = f"{new_number()[1:]}@example.com"
        with Sidecar(home) as sidecar:
            assert sidecar.call("auth/start", email=address)["contact"] == "8***@example.com"
            account = sidecar.call("auth/verify", email=address, code=local_cloud.code_sent_to(address))["account"]
            assert (account["state"], account["label"]) == ("logged_in", address)

    def test_a_phone_and_a_password_log_in_as_well(self, home: Home, local_cloud: Cloud) -> None:
        number, password = new_number(), "a long password"
        httpx.post(
            f"{local_cloud.url}/auth/v1/signup",
            json={"phone": number, "password": password},
            headers={"apikey": local_cloud.publishable_key},
            trust_env=False,
        ).raise_for_status()
        with Sidecar(home) as sidecar:
            assert refused(sidecar, "auth/password", phone=number, password="wrong").kind == "bad_credentials"
            assert sidecar.call("auth/password", phone=number, password=password)["account"]["state"] == "logged_in"

    def test_a_second_code_within_a_minute_is_refused_with_the_time_to_wait(
        self, home: Home, local_cloud: Cloud
    ) -> None:
        number = new_number()
        with Sidecar(home) as sidecar:
            sidecar.call("auth/start", phone=number)
            error = refused(sidecar, "auth/start", phone=number)
            assert (error.kind, error.data["retryable"]) == ("rate_limited", True)
            assert 0 < error.data["retryAfter"] <= 60
            local_cloud.age_code(number, 60)
            sidecar.call("auth/start", phone=number)

    def test_a_code_that_is_too_old_is_refused(self, home: Home, local_cloud: Cloud) -> None:
        number = new_number()
        with Sidecar(home) as sidecar:
            sidecar.call("auth/start", phone=number)
            local_cloud.age_code(number, 3601)
            code = local_cloud.code_sent_to(number)
            assert refused(sidecar, "auth/verify", phone=number, code=code).kind == "code_refused"

    @pytest.mark.parametrize(
        ("params", "field"),
        [
            ({"phone": "12345"}, "phone"),
            ({"phone": "4155552671"}, "phone"),
            ({"email": "nobody"}, "email"),
            ({}, "phone"),
            ({"phone": "13800138000", "email": "a@example.com"}, "email"),
        ],
    )
    def test_what_cannot_be_reached_is_refused_by_its_field(
        self, home: Home, params: dict[str, str], field: str
    ) -> None:
        with Sidecar(home) as sidecar:
            error = refused(sidecar, "auth/start", **params)
            assert (error.code, error.kind, error.data["field"]) == (-32602, "invalid_input", field)

    def test_the_login_survives_a_restart_and_a_logout_keeps_the_memory(self, home: Home, local_cloud: Cloud) -> None:
        number = new_number()
        with Sidecar(home) as sidecar:
            account = log_in(sidecar, local_cloud, number)
            sidecar.update("留下来的")
            wait_until_synced(sidecar)
        with Sidecar(home) as sidecar:
            assert sidecar.call("auth/status")["account"] == account
            left = sidecar.call("auth/logout")["account"]
            assert left == {**account, "state": "logged_out"}
            assert "留下来的" in sidecar.load()["content"]
            local_cloud.age_code(number, 60)
            assert log_in(sidecar, local_cloud, number) == account

    def test_another_phone_comes_into_a_memory_of_its_own(self, home: Home, local_cloud: Cloud) -> None:
        questions, accounts = {}, {}
        with Sidecar(home) as sidecar:
            for number in (new_number(), new_number()):
                account = log_in(sidecar, local_cloud, number)
                assert account == sidecar.call("auth/status")["account"]
                assert account["label"] == masked(number)
                accounts[number] = account["userId"]
                questions[number] = sidecar.update("各人的话")["eventId"]
                wait_until_synced(sidecar)
        for number, user_id in accounts.items():
            assert ServerRows(local_cloud, user_id).event_ids() == [questions[number]]

    def test_without_a_network_it_says_so_and_capture_goes_on(self, tmp_path: Path, local_cloud: Cloud) -> None:
        with Network(local_cloud) as network:
            home = Home(tmp_path / "a", **cloud_settings(local_cloud, network.url))
            network.disconnect()
            with Sidecar(home) as sidecar:
                assert refused(sidecar, "auth/start", phone=new_number()).kind == "cloud_unavailable"
                assert sidecar.update("离线")["recorded"]

    def test_the_number_and_the_code_are_in_no_file_and_no_row(self, home: Home, local_cloud: Cloud) -> None:
        number = new_number()
        home.settings["LOG_LEVEL"] = "DEBUG"
        with Sidecar(home) as sidecar:
            account = log_in(sidecar, local_cloud, number)
            code = local_cloud.code_sent_to(number)
            refused(sidecar, "auth/start", phone=number)
            refused(sidecar, "auth/start", phone=f"{number}0")
            refused(sidecar, "auth/verify", phone=number, code=code)
            sidecar.update("之后")
            wait_until_synced(sidecar)
        contents = "".join(path.read_bytes().decode("utf-8", "replace") for path in files_below(home.folder))
        for place in (contents, ServerRows(local_cloud, account["userId"]).all_rows_as_text()):
            assert number[3:] not in place
            assert f'"{code}"' not in place
        assert masked(number) in contents, "the search looks where it should"


class TestCommandLine:
    def test_without_a_terminal_it_takes_two_steps(self, home: Home, local_cloud: Cloud) -> None:
        number = new_number()
        sent = home.json("login", "--phone", number)
        assert sent["contact"] == masked(number)
        code = local_cloud.code_sent_to(number)
        wrong = home.run("login", "--phone", number, "--code", "-", "--json", stdin=other_code(code), check=False)
        assert wrong.returncode == 1
        assert json.loads(wrong.stderr)["error"]["data"]["kind"] == "code_refused"
        account = home.json("login", number, "--code", "-", stdin=f"{code}\n")["account"]
        assert (account["state"], account["label"]) == ("logged_in", masked(number))
        assert home.json("logout")["account"]["state"] == "logged_out"

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--phone", "13800138000", "--code", "123456"],
            ["13800138000", "--email", "a@example.com"],
            ["--phone", "12345"],
            [],
        ],
    )
    def test_what_cannot_be_meant_is_a_usage_error(self, home: Home, arguments: list[str]) -> None:
        done = home.run("--json", "login", *arguments, check=False)
        assert done.returncode == 2
        assert json.loads(done.stderr)["error"]["data"]["kind"] == "invalid_input"

    def test_at_a_terminal_it_asks_for_the_code_and_again_if_it_was_mistyped(
        self, home: Home, local_cloud: Cloud
    ) -> None:
        number = new_number()
        terminal, theirs = pty.openpty()
        process = subprocess.Popen(
            [*COMMAND, "--json", "login", number],
            env=home.environment,
            cwd=REPOSITORY,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(theirs)
        code = wait_until(lambda: _code(local_cloud, number))
        os.write(terminal, f"{other_code(code)}\n12\n{code[:3]} {code[3:]}\n".encode())
        said, asked = process.communicate(timeout=60)
        os.close(terminal)
        assert process.returncode == 0, asked
        assert json.loads(said)["account"]["label"] == masked(number)
        assert f"验证码已发送到 {masked(number)}。" in asked
        assert asked.count("验证码:") == 3
        assert asked.count("提示：") == 2
        assert number[3:] not in said + asked


def _code(cloud: Cloud, number: str) -> str | None:
    try:
        return cloud.code_sent_to(number)
    except httpx.HTTPStatusError:
        return None
