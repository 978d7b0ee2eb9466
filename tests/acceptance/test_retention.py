"""`privacy.retention_days` as a person meets it: old events leave this device for an archive."""

import gzip
from pathlib import Path

import pytest

from tests.acceptance.world import holding
from tests.sidecar import Home, Sidecar, eventually

OLD = "2025-01-02T03:04:05.000Z"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def fact(home: Home, text: str, ts: str) -> str:
    event = f'{{"type": "memory_fact", "payload": {{"content": "{text}"}}, "ts": "{ts}"}}'
    return str(home.json("events", "append", event)["eventIds"][0])


def saying(home: Home, text: str) -> list[str]:
    """Files below the home that say this, archives unpacked."""
    return [path.name for path in holding(home.folder, text, unpacked=_unpacked)]


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

        eventually(gone, within=60)
        assert sidecar.call("recall/search", query="很旧的一件事")["hits"] == []
        assert "新的问题" in sidecar.load(scope="device")["document"]
        assert sidecar.call("retention/plan")["events"] == 0
        sidecar.until("events/files", lambda told: told["position"] == told["head"])
    assert [name[-4:] for name in saying(home, "很旧的一件事")] == [".xbm"]


def test_a_plan_is_a_dry_run_and_an_apply_beside_a_sidecar_is_carried_out_by_it(home: Home) -> None:
    fact(home, "很旧的一件事", OLD)
    home.run("watermarks", "set", "their.backup", "0")
    assert home.json("retention", "plan")["events"] == 0
    held = home.json("retention", "plan", "--days", "30")
    assert (held["events"], held["behind"]) == (0, [{"name": "their.backup", "position": 0}])
    home.run("watermarks", "set", "their.backup", "1")
    with Sidecar(home) as sidecar:
        sidecar.until("events/files", lambda told: told["position"] == told["head"])
        sidecar.call("recall/search", query="旧")
        assert eventually(lambda: home.json("retention", "plan", "--days", "30")["events"]) == 1
        assert sidecar.call("events/read")["events"][0]["payload"] != {}

        done = home.json("retention", "apply", "--days", "30")

        assert (done["forgotten"], done["applied"], Path(done["archive"]).is_file()) == (1, True, True)
        eventually(lambda: sidecar.call("events/read")["events"][0]["payload"] == {})
    assert home.run("retention", "apply", "--days", "0", check=False).returncode == 2
