"""Scenarios of several accounts on one machine: nothing of one reaches the other, whenever the process dies."""

from collections import Counter
from typing import Final

from tests.acceptance.world import exchanges, level, questions
from tests.crash.online import synced
from tests.crash.world import Doomed, World
from tests.sidecar import Sidecar, eventually

WAITING: Final = 50


def fifty_waiting(world: World) -> None:
    """Ann has fifty events that no server has; Ben is somebody else."""
    world.user("ben")
    with world.sidecar() as sidecar:
        world.log_in(sidecar, "ann")
        level(sidecar)
    world.offline()
    with world.sidecar() as sidecar:
        world.say(sidecar, *(f"安的话 {number}" for number in range(WAITING)))
    world.online()


def switch(world: World, sidecar: Doomed) -> None:
    world.log_in(sidecar, "ben")
    sidecar.until("auth/status", lambda told: told["account"]["userId"] == world.user("ben").user_id)
    sidecar.eventually(lambda: "安的话" not in world.text)
    word = "本的话"
    world.notes["ben"] = str(sidecar.update(word, "好", idempotencyKey=word)["eventId"])
    sidecar.until("sync/status", synced)
    sidecar.stop()


def check_switched(world: World, sidecar: Sidecar) -> None:
    """Whoever is in now: Ben has his words only, and Ann finds all of hers, sent by her, once."""
    world.log_in(sidecar, "ben")
    eventually(lambda: sidecar.call("auth/status")["account"]["userId"] == world.user("ben").user_id)
    eventually(lambda: "安的话" not in world.text)
    assert "安的话" not in sidecar.load()["content"]
    sidecar.update("本的话", "好", idempotencyKey="本的话")
    level(sidecar)
    ids = world.server("ben").ids()
    assert len(ids) == 1
    assert ids[0] == world.notes.get("ben", ids[0])
    assert "安的话" not in world.server("ben").everything()
    world.log_in(sidecar, "ann")
    eventually(lambda: sidecar.call("auth/status")["account"]["userId"] == world.user("ann").user_id)
    world.check(sidecar)
    world.check_server(sidecar, "ann")
    assert len(world.server("ann").ids()) == WAITING
    assert "本的话" not in world.server("ann").everything()


def a_guest_beside(world: World) -> None:
    """Ann has a profile here; Ben left with his; the guest who came then has said something."""
    with world.sidecar() as sidecar:
        world.log_in(sidecar, "ann")
        world.say(sidecar, "安早先说的")
        level(sidecar)
        world.log_in(sidecar, "ben")
        eventually(lambda: "安早先说的" not in sidecar.load()["content"])
        level(sidecar)
        sidecar.call("auth/logout", localCopy="remove")
        eventually(lambda: sidecar.call("auth/status")["account"]["state"] == "guest")
        world.say(sidecar, "客人一", "客人二")
        sidecar_wrote(world, "客人二")


def sidecar_wrote(world: World, word: str) -> None:
    eventually(lambda: word in world.text)


def guest_logs_in(world: World, sidecar: Doomed) -> None:
    world.log_in(sidecar, "ann")
    sidecar.until("memory/load", lambda loaded: "安早先说的" in loaded["document"], waitMs=0)
    sidecar.until("sync/status", synced)
    sidecar.stop()


def check_went_along(world: World, sidecar: Sidecar) -> None:
    world.log_in(sidecar, "ann")
    eventually(lambda: sidecar.call("auth/status")["account"]["userId"] == world.user("ann").user_id)
    eventually(lambda: len(exchanges(sidecar)) == len(world.sent))
    world.check(sidecar)
    world.check_server(sidecar, "ann")
    assert world.server("ben").ids() == []


def all_sent(world: World) -> None:
    with world.sidecar() as sidecar:
        world.log_in(sidecar, "ann")
        world.say(sidecar, "安的话一", "安的话二")
        level(sidecar)
        sidecar_wrote(world, "安的话二")


def log_out(world: World, sidecar: Doomed) -> None:
    sidecar.call("auth/logout", localCopy="remove")
    world.notes["gone"] = True
    sidecar.until("memory/load", lambda loaded: loaded["source"] == "template", waitMs=0)
    sidecar.stop()


def check_removed(world: World, sidecar: Sidecar) -> None:
    """All of it is here or none of it, and none once it was answered; the cloud gives it back."""
    ids = Counter(world.server("ann").ids())
    assert ids == Counter(world.acknowledged.values())
    if world.notes.get("gone"):
        assert sidecar.call("auth/status")["account"]["state"] == "guest"
    if sidecar.call("auth/status")["account"]["state"] == "guest":
        eventually(lambda: not world.file.exists())
        eventually(lambda: len(list((world.home.data / "profiles").iterdir())) == 1)
        words = [word.encode() for word in world.sent]
        kept = b"".join(path.read_bytes() for path in world.home.folder.rglob("*") if path.is_file())
        assert not [word for word in words if word in kept]
    else:
        assert questions(sidecar.load(waitMs=0)["document"]) == dict.fromkeys(world.sent, 1)
    world.log_in(sidecar, "ann")
    eventually(lambda: len(exchanges(sidecar)) == len(world.sent))
    level(sidecar)
    assert Counter(world.server("ann").ids()) == ids
    world.check_tidy()
