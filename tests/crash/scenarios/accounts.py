"""Scenarios of several accounts on one machine: no data of one reaches the other, whenever the process dies."""

from collections import Counter
from typing import Final

from tests.acceptance.environment import exchanges, question_counts, wait_until_synced
from tests.crash.environment import CrashEnvironment, CrashingSidecar
from tests.crash.scenarios.with_cloud import is_synced
from tests.sidecar import Sidecar, wait_until

WAITING: Final = 50


def prepare_fifty_unsent(world: CrashEnvironment) -> None:
    """Ann has fifty unsent events; Ben is another account."""
    world.user("ben")
    with world.sidecar() as sidecar:
        world.log_in(sidecar, "ann")
        wait_until_synced(sidecar)
    world.offline()
    with world.sidecar() as sidecar:
        world.send_updates(sidecar, *(f"安的话 {number}" for number in range(WAITING)))
    world.online()


def switch_account(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    world.log_in(sidecar, "ben")
    sidecar.call_until("auth/status", lambda told: told["account"]["userId"] == world.user("ben").user_id)
    sidecar.wait_until(lambda: "安的话" not in world.text)
    word = "本的话"
    world.notes["ben"] = str(sidecar.update(word, "好", idempotencyKey=word)["eventId"])
    sidecar.call_until("sync/status", is_synced)
    sidecar.stop()


def check_switched(world: CrashEnvironment, sidecar: Sidecar) -> None:
    """Whichever account is active: Ben has only his words, and Ann all of hers, sent once."""
    world.log_in(sidecar, "ben")
    wait_until(lambda: sidecar.call("auth/status")["account"]["userId"] == world.user("ben").user_id)
    wait_until(lambda: "安的话" not in world.text)
    assert "安的话" not in sidecar.load()["content"]
    sidecar.update("本的话", "好", idempotencyKey="本的话")
    wait_until_synced(sidecar)
    ids = world.server("ben").event_ids()
    assert len(ids) == 1
    assert ids[0] == world.notes.get("ben", ids[0])
    assert "安的话" not in world.server("ben").all_rows_as_text()
    world.log_in(sidecar, "ann")
    wait_until(lambda: sidecar.call("auth/status")["account"]["userId"] == world.user("ann").user_id)
    world.check(sidecar)
    world.check_server(sidecar, "ann")
    assert len(world.server("ann").event_ids()) == WAITING
    assert "本的话" not in world.server("ann").all_rows_as_text()


def prepare_guest(world: CrashEnvironment) -> None:
    """Ann has a profile here, Ben has left, and a guest has recorded something since."""
    with world.sidecar() as sidecar:
        world.log_in(sidecar, "ann")
        world.send_updates(sidecar, "安早先说的")
        wait_until_synced(sidecar)
        world.log_in(sidecar, "ben")
        wait_until(lambda: "安早先说的" not in sidecar.load()["content"])
        wait_until_synced(sidecar)
        sidecar.call("auth/logout", localCopy="remove")
        wait_until(lambda: sidecar.call("auth/status")["account"]["state"] == "guest")
        world.send_updates(sidecar, "客人一", "客人二")
        wait_for_file_text(world, "客人二")


def wait_for_file_text(world: CrashEnvironment, word: str) -> None:
    wait_until(lambda: word in world.text)


def guest_logs_in(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    world.log_in(sidecar, "ann")
    sidecar.call_until("memory/load", lambda loaded: "安早先说的" in loaded["document"], waitMs=0)
    sidecar.call_until("sync/status", is_synced)
    sidecar.stop()


def check_guest_events_moved(world: CrashEnvironment, sidecar: Sidecar) -> None:
    world.log_in(sidecar, "ann")
    wait_until(lambda: sidecar.call("auth/status")["account"]["userId"] == world.user("ann").user_id)
    wait_until(lambda: len(exchanges(sidecar)) == len(world.sent_updates))
    world.check(sidecar)
    world.check_server(sidecar, "ann")
    assert world.server("ben").event_ids() == []


def prepare_all_sent(world: CrashEnvironment) -> None:
    with world.sidecar() as sidecar:
        world.log_in(sidecar, "ann")
        world.send_updates(sidecar, "安的话一", "安的话二")
        wait_until_synced(sidecar)
        wait_for_file_text(world, "安的话二")


def log_out(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    sidecar.call("auth/logout", localCopy="remove")
    world.notes["gone"] = True
    sidecar.call_until("memory/load", lambda loaded: loaded["source"] == "template", waitMs=0)
    sidecar.stop()


def check_removed(world: CrashEnvironment, sidecar: Sidecar) -> None:
    """All of the memory is here or none, none after the acknowledgement; the cloud returns it."""
    ids = Counter(world.server("ann").event_ids())
    assert ids == Counter(world.acknowledged_ids.values())
    if world.notes.get("gone"):
        assert sidecar.call("auth/status")["account"]["state"] == "guest"
    if sidecar.call("auth/status")["account"]["state"] == "guest":
        wait_until(lambda: not world.file.exists())
        wait_until(lambda: len(list((world.home.data / "profiles").iterdir())) == 1)
        words = [word.encode() for word in world.sent_updates]
        kept = b"".join(path.read_bytes() for path in world.home.folder.rglob("*") if path.is_file())
        assert not [word for word in words if word in kept]
    else:
        assert question_counts(sidecar.load(waitMs=0)["document"]) == dict.fromkeys(world.sent_updates, 1)
    world.log_in(sidecar, "ann")
    wait_until(lambda: len(exchanges(sidecar)) == len(world.sent_updates))
    wait_until_synced(sidecar)
    assert Counter(world.server("ann").event_ids()) == ids
    world.check_no_leftovers()
