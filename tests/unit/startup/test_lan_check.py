"""What `doctor` says about the local network."""

from typing import Any

import pytest
from msgspec.structs import replace

from sync.lan.model import LanInterfaceJson, LanPairedJson, LanPeerJson, LanRefusalJson, LanStatusJson
from sync.startup.lan_check import judge_status

LISTENING = LanStatusJson("auto", "listening", "::", 4711, None, 1, 0, (LanInterfaceJson("192.0.2.2", None),), (), ())
NOW = "2026-11-25T10:00:00.000Z"
PEER = LanPeerJson("device-b", "书房", "192.0.2.3", 1, "outgoing", NOW, level=True, sent=0, received=0)


PAIRED = LanPairedJson("device-b", "书房", NOW, connected=False)


def refusal(cause: str, device: str = "device-c") -> LanRefusalJson:
    return LanRefusalJson(cause, "192.0.2.9", device, 3, NOW, "Do this.")


@pytest.mark.parametrize(
    ("changes", "ok", "found"),
    [
        ({"state": "off", "enabled": "off"}, None, "LAN__ENABLED"),
        ({"state": "off"}, None, "no sidecar"),
        ({"state": "off", "paired": (PAIRED,)}, None, "1 paired"),
        ({"state": "alone"}, None, "no other device"),
        ({"state": "failed", "problem": "the port cannot be opened (in use)"}, False, "in use"),
        ({"peers": (PEER,)}, True, "1 of 1"),
        ({}, None, "4711"),
        ({"refusals": (refusal("stranger"),)}, None, "4711"),
        ({"refusals": (refusal("wrong_code"),)}, None, "4711"),
        ({"refusals": (refusal("pairing_ended", "device-b"),), "paired": (PAIRED,)}, False, "pairing_ended"),
        ({"refusals": (refusal("pairing_ended", "device-b"),)}, None, "4711"),
        ({"refusals": (refusal("copied_database"),), "peers": (PEER,)}, False, "copied_database"),
        ({"refusals": (refusal("other_version", "device-b"),), "peers": (PEER,)}, True, "1 of 1"),
        ({"interfaces": (LanInterfaceJson("192.0.2.2", "no multicast at this address"),)}, False, "no multicast"),
        (
            {"interfaces": (LanInterfaceJson("192.0.2.2", "no multicast"), LanInterfaceJson("192.0.2.3", None))},
            None,
            "4711",
        ),
    ],
)
def test_each_state_has_its_finding_and_a_fault_a_hint(changes: dict[str, Any], ok: bool | None, found: str) -> None:
    check = judge_status(replace(LISTENING, **changes))
    assert check.ok is ok
    assert found in check.found
    assert check.hint or check.ok is not False
