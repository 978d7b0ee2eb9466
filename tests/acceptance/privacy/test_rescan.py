"""Rules that became stricter: `doctor` says so, `redact --log` shows what they find and takes it away everywhere."""

import gzip
import json
from pathlib import Path
from typing import Any

from tests.acceptance.environment import (
    ServerRows,
    cloud_settings,
    files_containing,
    unique_text,
    wait_for_lines,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, wait_until

PATTERNS = json.dumps(["蓝猫[^ ，]+"])
OLD = "2025-01-02T03:04:05.000Z"


def check(home: Home) -> dict[str, Any]:
    told = json.loads(home.run("--json", "doctor", check=False).stdout)
    return next(check for check in told["checks"] if check["name"] == "redaction")


def saying(home: Home, text: str) -> list[str]:
    """Files below the home that say this, archives unpacked."""
    found = files_containing(
        home.folder, text, unpack=lambda path, data: gzip.decompress(data) if path.suffix == ".xbm" else data
    )
    return [path.name for path in found]


def say(sidecar: Sidecar, text: str, kind: str = "memory_fact") -> str:
    told = sidecar.call("events/append", event={"type": kind, "payload": {"content": text}, "ts": OLD})
    return str(told["eventIds"][0])


def archive(sidecar: Sidecar, events: int) -> None:
    """What is old goes into an archive, as soon as all who follow the log have taken it."""
    sidecar.call("recall/search", query="旧")
    wait_until(lambda: sidecar.call("retention/plan", days=30)["events"] == events)
    assert sidecar.call("retention/apply", days=30)["forgotten"] == events
    assert sidecar.call("recall/search", query="旧")["hits"] == []  # and the index has let go of it


def test_a_canary_kept_under_older_rules_is_found_nowhere_afterwards(
    tmp_path: Path, local_cloud: Cloud, user: User
) -> None:
    home = Home(tmp_path / "a", **cloud_settings(local_cloud))
    other = Home(tmp_path / "b", device="device-b", **cloud_settings(local_cloud))
    server = ServerRows(local_cloud, user.user_id)
    canary, kept = unique_text("蓝猫7"), unique_text("留下")
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.update(f"{canary} 是什么？", kept)
        wait_for_lines(home, canary)
        wait_until_synced(sidecar)
    with Sidecar(other) as sidecar:
        sidecar.log_in(user.email, user.password)
        wait_until_synced(sidecar)
        wait_until(lambda: canary in str(sidecar.load()))
    assert canary in server.all_rows_as_text()
    assert check(home)["ok"] is True

    home.settings["REDACTION__PATTERNS"] = other.settings["REDACTION__PATTERNS"] = PATTERNS
    found = check(home)
    assert found["ok"] is None
    assert "redact --log" in found["hint"]
    dry = home.json("redact", "--log")
    assert (len(dry["corrected"]), dry["counts"], dry["applied"]) == (1, {"自定义": 1}, False)
    assert canary in home.file.read_text("utf-8")
    assert home.json("redact", "--log", "--apply")["applied"] is True

    with Sidecar(home) as sidecar:
        wait_until_synced(sidecar)
        wait_until(lambda: canary not in server.all_rows_as_text())
        assert f"AI 答：{kept}" in sidecar.load()["document"]
        wait_until(lambda: files_containing(home.folder, canary) == [])
    with Sidecar(other) as sidecar:
        wait_until_synced(sidecar)
        wait_until(lambda: canary not in str(sidecar.load()))
        assert kept in str(sidecar.load())
        wait_until(lambda: canary not in str(sidecar.call("events/read")))
        wait_until(lambda: files_containing(other.folder, canary) == [])
    assert check(home)["ok"] is True
    for folder in (home.folder, other.folder):
        for trace in (canary, canary[-6:]):
            assert files_containing(folder, trace) == []
    assert "AI 答" in home.file.read_text("utf-8")


def test_a_running_sidecar_carries_it_out(tmp_path: Path) -> None:
    home = Home(tmp_path / "a", REDACTION__PATTERNS=PATTERNS)
    loose = Home(tmp_path / "a")
    with Sidecar(loose) as sidecar:
        sidecar.update("蓝猫77ab 是什么？")
    with Sidecar(home) as sidecar:
        told = home.json("redact", "--log", "--apply")
        assert told["counts"] == {"自定义": 1}
        wait_until(lambda: "蓝猫77ab" not in home.file.read_text("utf-8"))
        assert sidecar.call("redaction/rescan")["corrected"] == []
        assert "[自定义] 是什么？" in sidecar.load()["document"]


def test_what_retention_archived_is_corrected_in_its_archive_on_the_server_and_elsewhere(
    tmp_path: Path, local_cloud: Cloud, user: User
) -> None:
    home = Home(tmp_path / "a", **cloud_settings(local_cloud))
    other = Home(tmp_path / "b", device="device-b", **cloud_settings(local_cloud))
    server = ServerRows(local_cloud, user.user_id)
    canary, kept = unique_text("蓝猫7"), unique_text("留下")
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        told = say(sidecar, f"{canary}，{kept}")
        wait_until_synced(sidecar)
        archive(sidecar, 1)
    assert ".xbm" in [name[-4:] for name in saying(home, canary)]
    with Sidecar(other) as sidecar:
        sidecar.log_in(user.email, user.password)
        wait_until_synced(sidecar)
        wait_until(lambda: canary in str(sidecar.call("events/read")))
    assert canary in server.all_rows_as_text()

    home.settings["REDACTION__PATTERNS"] = other.settings["REDACTION__PATTERNS"] = PATTERNS
    assert home.json("redact", "--log")["corrected"] == [told]
    assert home.json("redact", "--log", "--apply")["corrected"] == [told]

    assert saying(home, canary) == []
    assert ".xbm" in [name[-4:] for name in saying(home, kept)]
    with Sidecar(home) as sidecar:
        wait_until_synced(sidecar)
        wait_until(lambda: canary not in server.all_rows_as_text())
        assert kept in server.all_rows_as_text()
    with Sidecar(other) as sidecar:
        wait_until_synced(sidecar)
        wait_until(lambda: canary not in str(sidecar.call("events/read")))
        assert kept in str(sidecar.call("events/read"))


def test_beside_a_sidecar_the_archives_are_corrected_and_can_be_forgotten_from(tmp_path: Path) -> None:
    loose, home = Home(tmp_path / "a"), Home(tmp_path / "a", REDACTION__PATTERNS=PATTERNS)
    with Sidecar(loose) as sidecar:
        told, _ = say(sidecar, "蓝猫77ab，别忘了"), say(sidecar, "蓝猫77ab，去年的口味")
        say(sidecar, "蓝猫77ab，教训", kind="note_taken")
        archive(sidecar, 3)
        wait_until(lambda: [name[-4:] for name in saying(home, "蓝猫77ab")] == [".xbm"])

        assert home.json("redact", "--log", "--apply")["counts"] == {"自定义": 3}

        assert saying(home, "蓝猫77ab") == []
        assert ".xbm" in [name[-4:] for name in saying(home, "，教训")]
        wait_until(lambda: "[自定义]，别忘了" in str(sidecar.call("events/read", types=["memory_fact"])))
        archive(sidecar, 6)  # they were in the log again, and go with their corrections
        wait_until(lambda: {name[-4:] for name in saying(home, "，别忘了")} == {".xbm"})
        home.run("forget", told)
        home.run("forget", "--query", "去年的口味", "--yes")
        wait_until(lambda: saying(home, "，别忘了") + saying(home, "去年的口味") == [], timeout=60)
        assert {name[-4:] for name in saying(home, "，教训")} == {".xbm"}
