"""Damaged files of a home: the next start names what was damaged, and nothing is lost or doubled. Real processes."""

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.environment import exchanges, question_counts
from tests.sidecar import Home, Sidecar


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def warning_named(status: dict[str, Any], name: str) -> str:
    """The warning that begins with a name; empty if there is none."""
    return next((warning for warning in status["document"]["warnings"] if warning.startswith(name)), "")


@pytest.mark.parametrize("content", [b"", b'{"a":[1]}', b"\0" * 91], ids=["empty", "other JSON", "zeros"])
def test_a_bad_installation_file_stops_no_start(home: Home, content: bytes) -> None:
    with Sidecar(home) as sidecar:
        sidecar.update("我喜欢黄山毛峰")
    path, before = home.data / "installation.json", home.installation
    path.write_bytes(content)
    with Sidecar(home) as sidecar:
        status = sidecar.call("sync/status")
        assert "installation.json.damaged-1" in warning_named(status, "installation_derived")
        sidecar.update("又来了")
        assert {event["device_id"] for event in exchanges(sidecar)} == {home.settings["DEVICE_ID"]}
        assert question_counts(sidecar.load()["document"]) == {"我喜欢黄山毛峰": 1, "又来了": 1}
    assert home.installation["profile"] == before["profile"]
    assert path.with_name("installation.json.damaged-1").read_bytes() == content
    with Sidecar(home) as sidecar:
        assert not warning_named(sidecar.call("sync/status"), "installation_derived")
