"""Scenarios of one user with a cloud."""

import json
import time
from typing import Any

from tests.acceptance.environment import events_of, wait_until_synced
from tests.crash.environment import CrashEnvironment, CrashingSidecar
from tests.sidecar import Home, Sidecar


def prepare_offline_updates(world: CrashEnvironment) -> None:
    with world.sidecar() as sidecar:
        world.log_in(sidecar, "ann")
        wait_until_synced(sidecar)
    world.offline()
    with world.sidecar() as sidecar:
        world.send_updates(sidecar, *(f"离线 {number}" for number in range(5)))
    world.online()


def go_online(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    world.send_updates(sidecar, "又在线上")
    sidecar.call_until("sync/status", is_synced)
    world.send_updates(sidecar, "再说一句")
    sidecar.call_until("sync/status", is_synced)
    sidecar.wait_until(lambda: "再说一句" in world.text)
    sidecar.stop()


def is_synced(status: Any) -> bool:
    return bool(status["pending"] == 0 and status["cloud"]["state"] == "synced")


def check_everything(world: CrashEnvironment, sidecar: Sidecar) -> None:
    state = sidecar.call("auth/status")["account"]["state"]
    if state != "logged_in":  # killed before the session was stored: log in again
        world.log_in(sidecar, "ann")
    world.check(sidecar)
    world.check_server(sidecar, "ann")


def prepare_other_device_updates(world: CrashEnvironment) -> None:
    """Another device of the user has recorded something that this one has not pulled yet."""
    with world.sidecar() as sidecar:
        world.log_in(sidecar, "ann")
        world.send_updates(sidecar, "这台说的")
        wait_until_synced(sidecar)
    other = Home(world.folder / "other", device="device-b", **settings_without_paths(world.home))
    with Sidecar(other) as sidecar:
        world.log_in(sidecar, "ann")
        for number in range(4):
            sidecar.update(f"那台说的 {number}")
        wait_until_synced(sidecar)


def settings_without_paths(home: Home) -> dict[str, str]:
    own = {"DATA_DIR", "MEMORY_FILE", "DEVICE_ID", "DEVICE_NAME", "TOKEN_STORE"}
    return {name: value for name, value in home.settings.items() if name not in own}


def pull_events(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    sidecar.call_until("memory/load", lambda loaded: "那台说的 3" in loaded["content"])
    assert sidecar.call("devices/list")["source"] == "cloud"
    sidecar.stop()


def check_pulled(world: CrashEnvironment, sidecar: Sidecar) -> None:
    sidecar.call_until("memory/load", lambda loaded: "那台说的 3" in loaded["content"])
    wait_until_synced(sidecar)
    heard = [event["event_id"] for event in events_of(sidecar, "exchange_recorded")]
    assert sorted(heard) == sorted(world.server("ann").event_ids())
    assert len(set(heard)) == len(heard) == 5
    assert {device["deviceId"] for device in sidecar.call("devices/list")["devices"]} == {"device-a", "device-b"}
    world.check_sound(sidecar)
    world.check_document(sidecar)


def prepare_guest_updates(world: CrashEnvironment) -> None:
    world.user("ann")
    with world.sidecar() as sidecar:
        world.send_updates(sidecar, "客人一", "客人二", "客人三")


def first_login(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    world.log_in(sidecar, "ann")
    go_online(world, sidecar)


def prepare_expired_token(world: CrashEnvironment) -> None:
    """The token has expired by the local clock; the server accepts the refresh token once."""
    prepare_offline_updates(world)
    (path,) = world.home.data.glob("profiles/*/session.json")
    session = json.loads(path.read_text())
    session["expires_at"] = time.time() - 5
    path.write_text(json.dumps(session))
