"""Rules that became stricter: `doctor` says so, `redact --log` shows what they find and takes it away everywhere."""

import json
from pathlib import Path
from typing import Any

from tests.acceptance.world import Server, holding, in_file, level, reaching, unique
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, eventually

PATTERNS = json.dumps(["蓝猫[^ ，]+"])


def check(home: Home) -> dict[str, Any]:
    told = json.loads(home.run("--json", "doctor", check=False).stdout)
    return next(check for check in told["checks"] if check["name"] == "redaction")


def test_a_canary_kept_under_older_rules_is_found_nowhere_afterwards(
    tmp_path: Path, local_cloud: Cloud, user: User
) -> None:
    home = Home(tmp_path / "a", **reaching(local_cloud))
    other = Home(tmp_path / "b", device="device-b", **reaching(local_cloud))
    server = Server(local_cloud, user.user_id)
    canary, kept = unique("蓝猫7"), unique("留下")
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.update(f"我的暗号是 {canary}，记住", kept)
        in_file(home, canary)
        level(sidecar)
    with Sidecar(other) as sidecar:
        sidecar.log_in(user.email, user.password)
        level(sidecar)
        eventually(lambda: canary in str(sidecar.load()))
    assert canary in server.everything()
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
        level(sidecar)
        eventually(lambda: canary not in server.everything())
        assert f"AI 答：{kept}" in sidecar.load()["document"]
        eventually(lambda: holding(home.folder, canary) == [])
    with Sidecar(other) as sidecar:
        level(sidecar)
        eventually(lambda: canary not in str(sidecar.load()))
        assert kept in str(sidecar.load())
        eventually(lambda: canary not in str(sidecar.call("events/read")))
        eventually(lambda: holding(other.folder, canary) == [])
    assert check(home)["ok"] is True
    for folder in (home.folder, other.folder):
        for trace in (canary, canary[-6:]):
            assert holding(folder, trace) == []
    assert "AI 答" in home.file.read_text("utf-8")


def test_a_running_sidecar_carries_it_out(tmp_path: Path) -> None:
    home = Home(tmp_path / "a", REDACTION__PATTERNS=PATTERNS)
    loose = Home(tmp_path / "a")
    with Sidecar(loose) as sidecar:
        sidecar.update("我的暗号是 蓝猫77ab，记住")
    with Sidecar(home) as sidecar:
        told = home.json("redact", "--log", "--apply")
        assert told["counts"] == {"自定义": 1}
        eventually(lambda: "蓝猫77ab" not in home.file.read_text("utf-8"))
        assert sidecar.call("redaction/rescan")["corrected"] == []
        assert "我的暗号是 [自定义]，记住" in sidecar.load()["document"]
