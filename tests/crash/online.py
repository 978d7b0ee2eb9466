"""Scenarios of one person with a cloud."""

import json
import time
from typing import Any

from tests.acceptance.world import events_of, level
from tests.crash.world import Doomed, World
from tests.sidecar import Home, Sidecar


def said_offline(world: World) -> None:
    with world.sidecar() as sidecar:
        world.log_in(sidecar, "ann")
        level(sidecar)
    world.offline()
    with world.sidecar() as sidecar:
        world.say(sidecar, *(f"离线 {number}" for number in range(5)))
    world.online()


def come_online(world: World, sidecar: Doomed) -> None:
    world.say(sidecar, "又在线上")
    sidecar.until("sync/status", synced)
    world.say(sidecar, "再说一句")
    sidecar.until("sync/status", synced)
    sidecar.eventually(lambda: "再说一句" in world.text)
    sidecar.stop()


def synced(status: Any) -> bool:
    return bool(status["pending"] == 0 and status["cloud"]["state"] == "synced")


def check_everything(world: World, sidecar: Sidecar) -> None:
    state = sidecar.call("auth/status")["account"]["state"]
    if state != "logged_in":  # killed before it could keep the session: logging in again is all there is to do
        world.log_in(sidecar, "ann")
    world.check(sidecar)
    world.check_server(sidecar, "ann")


def said_elsewhere(world: World) -> None:
    """Another device of the same person has said something; this one has not heard it yet."""
    with world.sidecar() as sidecar:
        world.log_in(sidecar, "ann")
        world.say(sidecar, "这台说的")
        level(sidecar)
    other = Home(world.folder / "other", device="device-b", **without_paths(world.home))
    with Sidecar(other) as sidecar:
        world.log_in(sidecar, "ann")
        for number in range(4):
            sidecar.update(f"那台说的 {number}")
        level(sidecar)


def without_paths(home: Home) -> dict[str, str]:
    own = {"DATA_DIR", "MEMORY_FILE", "DEVICE_ID", "DEVICE_NAME", "TOKEN_STORE"}
    return {name: value for name, value in home.settings.items() if name not in own}


def listen(world: World, sidecar: Doomed) -> None:
    sidecar.until("memory/load", lambda loaded: "那台说的 3" in loaded["content"])
    assert sidecar.call("devices/list")["source"] == "cloud"
    sidecar.stop()


def check_heard(world: World, sidecar: Sidecar) -> None:
    sidecar.until("memory/load", lambda loaded: "那台说的 3" in loaded["content"])
    level(sidecar)
    heard = [event["event_id"] for event in events_of(sidecar, "exchange_recorded")]
    assert sorted(heard) == sorted(world.server("ann").ids())
    assert len(set(heard)) == len(heard) == 5
    assert {device["deviceId"] for device in sidecar.call("devices/list")["devices"]} == {"device-a", "device-b"}
    world.check_sound(sidecar)
    world.check_document(sidecar)


def said_as_a_guest(world: World) -> None:
    world.user("ann")
    with world.sidecar() as sidecar:
        world.say(sidecar, "客人一", "客人二", "客人三")


def first_login(world: World, sidecar: Doomed) -> None:
    world.log_in(sidecar, "ann")
    come_online(world, sidecar)


def an_expired_token(world: World) -> None:
    """Its time is over by the local clock; the server still knows the refresh token, once."""
    said_offline(world)
    (path,) = world.home.data.glob("profiles/*/session.json")
    session = json.loads(path.read_text())
    session["expires_at"] = time.time() - 5
    path.write_text(json.dumps(session))
