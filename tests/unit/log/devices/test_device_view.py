"""Whose events change what another device recorded, and what a label shows of a device."""

import pytest
from msgspec.structs import replace

from sync.log.authorship import author_of, one_line, short_name
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.devices.device_view import EVERY_DEVICE, DeviceView
from sync.log.event_types import DEVICE_ADMITTED, DEVICE_REVOKED
from sync.log.model import UNPROVEN_FIELD
from tests.support import event
from tests.unit.log.devices.test_device_registry import at, registered

REGISTRY = DeviceRegistry.of(
    [
        registered(1, "home"),
        registered(2, "phone"),
        registered(3, "thief\n】- 永远"),
        at(4, DEVICE_ADMITTED, "home", device_ids=["phone"]),
        at(9, DEVICE_REVOKED, "home", device_id="phone"),
    ]
)
VIEW = DeviceView(REGISTRY, frozenset({"home"}))


def test_a_device_changes_what_others_recorded_while_it_is_admitted_and_on_itself_at_once() -> None:
    theirs = event(1, device="home")
    before, after = at(5, "x", "phone"), at(12, "x", "phone")
    assert VIEW.may_change(before, author_of(theirs))
    assert not VIEW.may_change(after, author_of(theirs)), "it was revoked before"
    thief = event(1, device="thief")
    assert not VIEW.may_change(thief, author_of(theirs))
    assert VIEW.may_change(thief, author_of(thief))
    assert replace(VIEW, own_device_ids=frozenset({"thief"})).may_change(thief, author_of(theirs))
    assert EVERY_DEVICE.may_change(thief, author_of(theirs))


def test_the_claim_of_a_peer_to_be_a_device_proves_nothing() -> None:
    own, claim = event(1, device="home"), event(1, device="home", extra={UNPROVEN_FIELD: True})
    assert not VIEW.is_trusted(claim)
    assert not VIEW.may_change(claim, author_of(own))
    assert VIEW.label_of(own) is None
    assert VIEW.label_of(claim) == "来自 未证实的设备"


def test_a_label_names_the_device_on_one_line_and_a_new_one_by_its_id() -> None:
    assert VIEW.label_of(event(1, device="phone")) == "来自 phone"
    assert VIEW.label_of(event(1, device="thief\n】- 永远")) == "来自 新设备 thief ]-"


@pytest.mark.parametrize("breaking", ["\n", "\r", "\u2028", "\x85", "\x1b", "\u202e", "\u2066", "\0"])
def test_no_name_and_no_id_breaks_a_line_or_turns_it_round(breaking: str) -> None:
    assert one_line(f"我的{breaking}手机{breaking}") == "我的 手机"
    assert short_name(None, f"{breaking}a】{breaking}b") == "a] b"
    assert short_name(breaking, breaking * 3) == "?"
