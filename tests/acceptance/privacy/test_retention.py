"""`privacy.retention_days` as a person meets it: old events leave this device for an archive."""

import gzip
from pathlib import Path

import pytest

from sync.clock import SystemClock
from sync.open_app import AppMode, open_app
from sync.settings.settings import Settings
from tests.acceptance.environment import cloud_settings, files_containing, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, wait_until

OLD = "2025-01-02T03:04:05.000Z"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def fact(home: Home, text: str, ts: str) -> str:
    event = f'{{"type": "memory_fact", "payload": {{"content": "{text}"}}, "ts": "{ts}"}}'
    return str(home.json("events", "append", event)["eventIds"][0])


def saying(home: Home, text: str) -> list[str]:
    """Files below the home that say this, archives unpacked."""
    return [path.name for path in files_containing(home.folder, text, unpack=_unpacked)]


def _unpacked(path: Path, data: bytes) -> bytes:
    return gzip.decompress(data) if path.suffix == ".xbm" else data


def test_a_sidecar_archives_what_is_older_than_the_setting_and_nothing_else_holds_it(home: Home) -> None:
    event_id = fact(home, "很旧的一件事", OLD)
    home.settings["PRIVACY__RETENTION_DAYS"] = "30"
    with Sidecar(home) as sidecar:
        sidecar.update("新的问题", "新的回答")
        assert sidecar.call("recall/search", query="很旧的一件事")["hits"]

        def gone() -> bool:
            (event,) = sidecar.call("events/read", types=["memory_fact"])["events"]
            return bool(event["event_id"] == event_id and event["payload"] == {})

        wait_until(gone, timeout=60)
        assert sidecar.call("recall/search", query="很旧的一件事")["hits"] == []
        assert "新的问题" in sidecar.load(scope="device")["document"]
        assert sidecar.call("retention/plan")["events"] == 0
        sidecar.call_until("events/files", lambda told: told["position"] == told["head"])
    assert [name[-4:] for name in saying(home, "很旧的一件事")] == [".xbm"]


def test_a_plan_is_a_dry_run_and_an_apply_beside_a_sidecar_is_carried_out_by_it(home: Home) -> None:
    fact(home, "很旧的一件事", OLD)
    home.run("watermarks", "set", "their.backup", "0")
    assert home.json("retention", "plan")["events"] == 0
    held = home.json("retention", "plan", "--days", "30")
    assert (held["events"], held["behind"]) == (0, [{"name": "their.backup", "position": 0}])
    home.run("watermarks", "set", "their.backup", "1")
    with Sidecar(home) as sidecar:
        sidecar.call_until("events/files", lambda told: told["position"] == told["head"])
        sidecar.call("recall/search", query="旧")
        assert wait_until(lambda: home.json("retention", "plan", "--days", "30")["events"]) == 1
        assert sidecar.call("events/read")["events"][0]["payload"] != {}

        done = home.json("retention", "apply", "--days", "30")

        assert (done["forgotten"], done["applied"], Path(done["archive"]).is_file()) == (1, True, True)
        wait_until(lambda: sidecar.call("events/read")["events"][0]["payload"] == {})
    assert home.run("retention", "apply", "--days", "0", check=False).returncode == 2


def test_what_is_forgotten_leaves_the_archive_too_by_its_words_and_beside_a_sidecar(home: Home) -> None:
    fact(home, "很旧的一件事", OLD)
    fact(home, "很旧的另一件", OLD)
    home.run("retention", "apply", "--days", "30")
    assert home.json("forget", "--query", "一件事")["found"] == 1, "it is in the archive alone"
    with Sidecar(home) as sidecar:
        sidecar.load(scope="device")
        home.run("forget", "--query", "一件事", "--yes")
        wait_until(lambda: saying(home, "一件事") == [], timeout=60)
    assert [name[-4:] for name in saying(home, "另一件")] == [".xbm"]
    home.run("forget", "--query", "另一件", "--yes")
    assert saying(home, "另一件") == []


def test_an_archive_that_cannot_be_opened_is_named_and_stops_no_forget(home: Home) -> None:
    first = fact(home, "很旧的一件事", OLD)
    fact(home, "很旧的另一件", OLD)
    archive = Path(home.json("retention", "apply", "--days", "30")["archive"])
    archive.with_name("0000.xbm").symlink_to("nowhere")
    archive.with_name("9999.xbm").mkdir()

    told = home.run("forget", first).stderr
    assert "0000.xbm" in told
    assert "9999.xbm" in told
    home.run("forget", "--query", "另一件", "--yes")

    assert saying(home, "一件") == []


async def test_what_is_forgotten_while_an_archive_is_written_is_not_in_it(home: Home) -> None:
    event_id = fact(home, "很旧的一件事", OLD)

    class Meanwhile(SystemClock):
        def random_bytes(self, count: int) -> bytes:
            if count == len("name") and not asked:  # the plan is made by now, and the file gets its name
                asked.append(home.run("forget", event_id).stdout)
            return super().random_bytes(count)

    asked: list[str] = []
    settings = Settings(data_dir=home.data, memory_file=home.file, device_id="device-a", token_store="file")
    async with open_app(settings, AppMode.HELPER, clock=Meanwhile()) as app:
        room = app.retention()
        done = await room.apply(room.build_rules(30, None), lambda _done, _total: None)
    assert asked
    assert done.archive is not None
    assert saying(home, "很旧的一件事") == []


def test_removing_a_memory_removes_its_archives(tmp_path: Path, local_cloud: Cloud, user: User) -> None:
    home = Home(tmp_path, PRIVACY__RETENTION_DAYS="30", **cloud_settings(local_cloud))
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.call("events/append", event={"type": "memory_fact", "payload": {"content": "很旧的一件事"}, "ts": OLD})
        wait_until_synced(sidecar)
        sidecar.call("recall/search", query="旧")
        wait_until(lambda: sidecar.call("retention/plan")["events"] == 1)
        archive = Path(sidecar.call("retention/apply")["archive"])
        assert archive.is_file()
        wait_until_synced(sidecar)
        sidecar.call("auth/logout", localCopy="remove")
        wait_until(lambda: not archive.parent.exists())
        assert saying(home, "很旧的一件事") == []
