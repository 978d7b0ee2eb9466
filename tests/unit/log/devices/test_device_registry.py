"""All devices compute the same registry from the same events, in whatever order they arrived."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sync.log.devices.device_registry import DeviceRegistry
from sync.log.event_types import DEVICE_ADMITTED, DEVICE_REGISTERED, DEVICE_RENAMED, DEVICE_REVOKED
from sync.log.model import UNPROVEN_FIELD, Event
from tests.support import event

DAY = 86_400_000


def at(number: int, kind: str, device: str, *, day: int = 0, seq: int | None = 0, **payload: Any) -> Event:
    hlc = f"{0x0193A5B2C3D4 + day * DAY:012x}-{number:04x}"
    fields: dict[str, Any] = {
        "type": kind,
        "hlc": hlc,
        "server_seq": number if seq == 0 else seq,
        "payload": payload,
        "event_id": f"evt_{number}",
    }
    return event(number, device=device, **fields)


def registered(number: int, device: str, **changes: Any) -> Event:
    return at(number, DEVICE_REGISTERED, device, name=device, public_key=f"ed25519:{device}", **changes)


def admitted(events: list[Event], last_spoken: dict[str, str] | None = None) -> set[str]:
    registry = DeviceRegistry.of(events, last_spoken)
    return {name for name, device in registry.devices.items() if device.is_admitted}


def test_the_first_device_of_the_server_is_admitted_and_admits_others() -> None:
    log = [registered(1, "a"), registered(2, "b"), registered(3, "c"), at(4, DEVICE_ADMITTED, "a", device_ids=["b"])]
    assert admitted(log) == {"a", "b"}
    assert DeviceRegistry.of(log).waiting() == ["c"]
    assert admitted([*log, at(5, DEVICE_ADMITTED, "b", device_ids=["c"])]) == {"a", "b", "c"}


def test_a_device_does_not_admit_itself_nor_is_it_admitted_by_one_that_is_not() -> None:
    log = [registered(1, "a"), registered(2, "b"), at(3, DEVICE_ADMITTED, "b", device_ids=["b", "c"])]
    assert admitted(log) == {"a"}
    assert not DeviceRegistry.of(log).is_admitted("unheard of")


def test_a_clock_that_is_behind_makes_no_device_the_first() -> None:
    assert admitted([registered(5, "a"), registered(9, "thief", day=-400)]) == {"a"}


def test_devices_from_before_admissions_are_admitted() -> None:
    old = [at(1, DEVICE_REGISTERED, "old", name="old"), at(2, DEVICE_REGISTERED, "later", name="later")]
    assert not DeviceRegistry.of(old).has_first
    assert DeviceRegistry.of(old).is_admitted("later")
    late = at(8, DEVICE_REGISTERED, "too late", name="claims to be old")
    assert admitted([*old, registered(3, "later"), late]) == {"old", "later"}


def test_a_revoked_device_is_not_admitted_and_what_it_admitted_before_is() -> None:
    log = [registered(1, "a"), registered(2, "b"), at(3, DEVICE_ADMITTED, "a", device_ids=["b"])]
    log += [at(4, DEVICE_ADMITTED, "b", device_ids=["c"]), at(5, DEVICE_REVOKED, "a", device_id="b")]
    log.append(at(6, DEVICE_ADMITTED, "b", device_ids=["d"]))
    assert admitted(log) == {"a", "c"}


def test_a_device_recovers_the_account_after_14_days_of_silence_only() -> None:
    log = [registered(1, "a"), registered(2, "b")]
    claim = [at(3, DEVICE_ADMITTED, "b", device_ids=["b"], recovery=True, day=13)]
    assert admitted(log + claim, {"a": log[0].hlc}) == {"a"}
    claim = [at(3, DEVICE_ADMITTED, "b", device_ids=["b"], recovery=True, day=14)]
    assert admitted(log + claim, {"a": log[0].hlc}) == {"a", "b"}
    other = [at(3, DEVICE_ADMITTED, "b", device_ids=["b", "c"], recovery=True, day=14)]
    assert admitted(log + other, {"a": log[0].hlc}) == {"a"}


def test_what_is_not_proven_says_nothing_about_devices() -> None:
    forged = [at(3, DEVICE_ADMITTED, "a", device_ids=["b"]), at(4, DEVICE_REVOKED, "a", device_id="a")]
    forged = [replace(one, extra={UNPROVEN_FIELD: True}) for one in forged]
    assert admitted([registered(1, "a"), *forged]) == {"a"}


def test_a_name_that_the_user_gave_outlives_the_devices_own() -> None:
    log = [registered(1, "a"), at(2, DEVICE_RENAMED, "b", device_id="a", name="书房")]
    log.append(at(3, DEVICE_REGISTERED, "a", name="new-host", public_key="ed25519:new"))
    found = DeviceRegistry.of(log).device("a")
    assert (found.name, found.own_name, found.keys) == ("书房", "new-host", frozenset({"ed25519:a", "ed25519:new"}))


@given(st.permutations(range(8)))
def test_the_order_of_arrival_does_not_matter(order: list[int]) -> None:
    log = [registered(1, "a"), registered(2, "b"), registered(3, "c"), registered(4, "d")]
    log += [at(5, DEVICE_ADMITTED, "a", device_ids=["b"]), at(6, DEVICE_ADMITTED, "b", device_ids=["c"])]
    log += [at(7, DEVICE_REVOKED, "c", device_id="b"), at(8, DEVICE_ADMITTED, "c", device_ids=["d"])]
    assert DeviceRegistry.of([log[number] for number in order]) == DeviceRegistry.of(log)
