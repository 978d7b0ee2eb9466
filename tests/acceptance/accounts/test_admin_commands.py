"""`xiaobai-memory admin …` on a real project, and what its erasing means for the devices."""

import json
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.environment import ServerRows, cloud_settings, exchanges, unique_text, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, wait_until


@pytest.fixture
def admin_home(tmp_path: Path, local_cloud: Cloud) -> Home:
    """The administrator's environment, which holds the secret key."""
    return Home(tmp_path / "harness", **cloud_settings(local_cloud), ADMIN_KEY=local_cloud.secret_key)


def device(tmp_path: Path, cloud: Cloud, user: User, name: str) -> Sidecar:
    sidecar = Sidecar(Home(tmp_path / name, device=name, **cloud_settings(cloud)))
    sidecar.log_in(user.email, user.password)
    wait_until_synced(sidecar)
    return sidecar


def age_last_seen(cloud: Cloud, user: User) -> None:
    with psycopg.connect(cloud.database_url, autocommit=True) as connection:
        connection.execute(
            "update ai_memory_devices set last_seen_at = now() - interval '1 year' where user_id = %s", [user.user_id]
        )


def failure(told: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    return told.returncode, json.loads(told.stderr)["error"]["data"]["kind"]


def test_every_list_answers_people_and_programs(
    tmp_path: Path, local_cloud: Cloud, user: User, admin_home: Home
) -> None:
    with device(tmp_path, local_cloud, user, "device-a") as sidecar:
        sidecar.update(unique_text("秘密"))
        wait_until_synced(sidecar)
    for name in ("users", "devices", "activity", "growth", "stale", "quarantine"):
        assert admin_home.run("admin", name).returncode == 0
        rows = admin_home.json("admin", name)["rows"]
        assert isinstance(rows, list)
        assert "秘密" not in str(rows)
    (mine,) = [row for row in admin_home.json("admin", "users")["rows"] if row["user_id"] == user.user_id]
    assert (mine["devices"], mine["events"]) == (
        1,
        admin_home.json("admin", "activity", "--user", user.user_id)["rows"][0]["events"],
    )
    (found,) = admin_home.json("admin", "devices", "--user", user.user_id)["rows"]
    assert (found["device_id"], found["name"]) == ("device-a", "name of device-a")
    assert not admin_home.data.exists(), "nothing of a memory was opened or made here"


def test_folding_and_pruning_lose_nothing_for_a_device_that_was_off_and_a_new_one(
    tmp_path: Path, local_cloud: Cloud, user: User, admin_home: Home, server: ServerRows
) -> None:
    words = [unique_text("记住") for _ in range(6)]
    with device(tmp_path, local_cloud, user, "device-b") as off:
        off.update(words[0])
        wait_until_synced(off)
    with device(tmp_path, local_cloud, user, "device-a") as sidecar:
        for word in words[1:5]:
            sidecar.update(word)
        wait_until_synced(sidecar)
    before = len(server.events)
    first = admin_home.json("admin", "checkpoint", user.user_id)
    assert first["heldBy"] == {user.user_id: "device-b"}
    age_last_seen(local_cloud, user)
    assert admin_home.json("admin", "checkpoint", user.user_id) == {"users": 1, "folded": before - first["folded"]}
    assert admin_home.json("admin", "prune", user.user_id) == {"users": 1, "pruned": before}
    assert server.events == []
    for name in ("device-b", "device-new"):
        with device(tmp_path, local_cloud, user, name) as late:
            if name == "device-b":
                late.update(words[5])
            wait_until_synced(late)
            assert {event["payload"]["question"] for event in exchanges(late)} == set(words)
            wait_until(lambda late=late: late.call("sync/status")["pending"] == 0)
    assert [row["type"] for row in server.events].count("exchange_recorded") == 1, "nothing folded was sent again"


def test_a_purged_users_devices_keep_what_they_have_and_bring_nothing_back(
    tmp_path: Path, local_cloud: Cloud, user: User, admin_home: Home, server: ServerRows
) -> None:
    word = unique_text("我的")
    with device(tmp_path, local_cloud, user, "device-a") as sidecar:
        sidecar.update(word)
        wait_until_synced(sidecar)
        assert admin_home.json("admin", "purge-user", user.user_id, "--yes")["erased"] > 0
        later = unique_text("以后")
        sidecar.update(later)
        wait_until(lambda: sidecar.call("sync/status")["cloud"]["state"] == "refused")
        assert word in sidecar.load()["content"]
        assert later in sidecar.load()["content"]
    assert (server.events, server.documents) == ([], [])
    assert [row["name"] for row in server.devices] == [None]


def test_a_purge_asks_for_the_users_id(user: User, admin_home: Home, server: ServerRows) -> None:
    result = admin_home.run("admin", "purge-user", user.user_id, stdin="yes\n", check=False)
    assert result.returncode == 2
    assert "nothing was erased" in result.stderr
    assert admin_home.run("admin", "purge-user", user.user_id, stdin=f"{user.user_id}\n").returncode == 0


def test_the_key_comes_from_the_environment_and_is_the_right_one(
    tmp_path: Path, local_cloud: Cloud, user: User, admin_home: Home
) -> None:
    without = Home(tmp_path / "without", **cloud_settings(local_cloud))
    assert failure(without.run("--json", "admin", "users", check=False)) == (1, "bad_setting")
    public = Home(tmp_path / "public", **cloud_settings(local_cloud), ADMIN_KEY=local_cloud.publishable_key)
    assert failure(public.run("--json", "admin", "users", check=False)) == (1, "bad_setting")
    wrong = Home(tmp_path / "wrong", **cloud_settings(local_cloud), ADMIN_KEY="sb_secret_of_another_project")
    result = wrong.run("--json", "admin", "users", check=False)
    assert failure(result) == (1, "forbidden")
    assert "sb_secret_of" not in result.stdout + result.stderr
    assert failure(admin_home.run("--json", "admin", "devices", "--user", "me", check=False)) == (2, "invalid_input")


def test_no_sidecar_starts_with_the_key(admin_home: Home) -> None:
    result = admin_home.run("serve", check=False)
    assert result.returncode == 1
    assert "XIAOBAI_ADMIN_KEY" in result.stderr
    assert admin_home.settings["ADMIN_KEY"] not in result.stdout + result.stderr
