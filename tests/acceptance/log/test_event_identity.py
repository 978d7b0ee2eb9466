"""Two devices on the local cloud agree on every event, whatever ids programs give and whatever was imported."""

import json
from pathlib import Path
from typing import Any

from tests.acceptance.environment import ServerRows, cloud_settings, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar


def log_in(sidecar: Sidecar, user: User) -> None:
    sidecar.log_in(user.email, user.password)
    wait_until_synced(sidecar)


def facts_in(answer: Any) -> set[tuple[Any, ...]]:
    return {(fact["factId"], fact["statement"], fact["status"]) for fact in answer["facts"]}


def events_in(answer: Any) -> set[tuple[str, ...]]:
    fields = ("event_id", "device_id", "hlc", "type", "payload")
    replicated = [event for event in answer["events"] if event["reach"] == "cloud"]
    return {tuple(json.dumps(event[name], sort_keys=True) for name in fields) for event in replicated}


def test_ids_of_programs_and_an_import_leave_two_devices_equal(tmp_path: Path, local_cloud: Cloud, user: User) -> None:
    homes = [Home(tmp_path / name, device=f"device-{name}", **cloud_settings(local_cloud)) for name in "ab"]
    path = tmp_path / "a.xbm"
    with Sidecar(homes[0]) as a, Sidecar(homes[1]) as b:
        for one in (a, b):
            log_in(one, user)
        for one, words in ((a, "zqaaa said at a"), (b, "zqbbb said at b")):
            event = {"event_id": "n-1", "type": "note", "payload": {"content": words}}
            assert one.call("events/append", event=event)["eventIds"] == ["n-1"]
        a.update("我在用 vim 编辑器")
        a.call("archive/export", path=str(path))
        a.update("我在用 emacs 编辑器")
        b.call("archive/import", path=str(path))
        for one in (a, b, a, b):
            one.call("sync/now")
        wanted: Any = {"limit": 1_000}
        b.call_until("events/read", lambda got: events_in(got) == events_in(a.call("events/read", **wanted)), **wanted)
        wanted = {"status": "all"}
        facts = facts_in(a.call("understanding/facts", **wanted))
        assert {"我在用 vim 编辑器", "我在用 emacs 编辑器"} <= {statement for _, statement, _ in facts}
        b.call_until("understanding/facts", lambda got: facts_in(got) == facts, **wanted)
        for one in (a, b):
            status = one.call("sync/status")
            assert (status["pending"], status["quarantined"]) == (0, 0)
        on_server = set(ServerRows(local_cloud, user.user_id).event_ids())
        assert {event["event_id"] for event in b.call("events/read", limit=1_000)["events"]} >= on_server


def test_ones_own_archive_before_a_login_is_what_the_account_has(
    tmp_path: Path, local_cloud: Cloud, user: User
) -> None:
    homes = [Home(tmp_path / name, device=f"device-{name}", **cloud_settings(local_cloud)) for name in "ab"]
    path, words = tmp_path / "a.xbm", "我在用 vim 编辑器"
    with Sidecar(homes[0]) as a, Sidecar(homes[1]) as b:
        log_in(a, user)
        a.update(words)
        wait_until_synced(a)
        a.call("archive/export", path=str(path))
        assert b.call("archive/import", path=str(path), mine=True)["unproven"] == 0
        log_in(b, user)
        wait_until_synced(a)
        for method, found in (("events/read", events_in), ("understanding/facts", facts_in)):
            b.call_until(method, lambda got, m=method, f=found: f(got) == f(a.call(m)))
        assert b.call("sync/status")["quarantined"] == 0
        shown = b.call_until("memory/load", lambda loaded: f"- {words}" in loaded["document"], waitMs=1)["document"]
        assert shown.count(f"- {words}") == 1
