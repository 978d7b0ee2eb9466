"""All devices compute the same registry from the same events, in whatever order they arrived."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sync.log.devices.device_registry import DeviceRegistry
from sync.log.event_catalogue import DECISION_TYPES
from sync.log.event_types import (
    DEVICE_ADMITTED,
    DEVICE_REGISTERED,
    DEVICE_RENAMED,
    DEVICE_REVOKED,
    ENTRY_ADDED,
    EXCHANGE_RECORDED,
    MEMORY_FACT,
    MESSAGE,
    PAYLOAD_FORGOTTEN,
)
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


LATER: Final = f"{0x0193A5B2C3D4 + 400 * DAY:012x}-0000"


def admitted(events: list[Event], last_spoken: dict[str, str] | None = None, local_hlc: str = LATER) -> set[str]:
    registry = DeviceRegistry.of(events, last_spoken, local_hlc)
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


def test_a_recovery_of_the_future_counts_up_to_the_local_clock_and_with_a_server_only_once_it_has_it() -> None:
    def log(*, seq: int | None) -> list[Event]:
        claim = at(3, DEVICE_ADMITTED, "b", day=30, seq=None, device_ids=["b"], recovery=True)
        return [registered(1, "a", seq=seq), registered(2, "b", seq=seq), claim]

    last = {"a": registered(1, "a").hlc}
    now, fortnight = (at(9, DEVICE_ADMITTED, "a", day=day).hlc for day in (1, 15))
    assert admitted(log(seq=None), last, now) == {"a"}
    assert admitted(log(seq=None), last, "") == {"a"}
    assert admitted(log(seq=None), last, fortnight) == {"a", "b"}
    assert admitted(log(seq=0), last, fortnight) == {"a"}
    of_server = [*log(seq=0)[:2], replace(log(seq=0)[2], server_seq=3, server_ts="2024-12-24T00:00:00.000Z")]
    assert admitted(of_server, last, fortnight) == {"a", "b"}


@pytest.mark.parametrize("day", [0, -300])
def test_only_an_admitted_device_revokes_and_names_others(day: int) -> None:
    log = [registered(1, "a"), registered(2, "b"), registered(3, "thief")]
    log.append(at(4, DEVICE_ADMITTED, "a", device_ids=["b"]))
    log += [at(5, DEVICE_REVOKED, "thief", day=day, device_id="b"), at(6, DEVICE_REVOKED, "thief", device_id="a")]
    log += [at(7, DEVICE_RENAMED, "thief", device_id=name, name="用户本人") for name in ("a", "b", "thief", "phantom")]
    registry = DeviceRegistry.of(log)
    assert admitted(log) == {"a", "b"}
    assert [registry.device(name).name for name in ("a", "b", "thief")] == ["a", "b", "用户本人"]
    assert registry.waiting() == ["thief"]
    heard = [*log, at(8, DEVICE_ADMITTED, "a", device_ids=["thief"])]
    assert admitted(heard) == {"a", "thief"}, "but it does not revoke who admitted it"


def test_of_two_devices_that_revoke_each_other_the_first_at_the_server_is_heard() -> None:
    log = [registered(1, "a"), registered(2, "b"), at(3, DEVICE_ADMITTED, "a", device_ids=["b"])]
    log += [at(4, DEVICE_REVOKED, "a", device_id="b"), at(5, DEVICE_REVOKED, "b", day=-300, device_id="a")]
    assert admitted(log) == {"a"}


def test_an_erased_registration_keeps_its_place_in_the_order_of_devices() -> None:
    erased = replace(registered(1, "a"), payload={}, extra={})
    assert admitted([erased, registered(2, "thief")]) == {"a"}
    assert admitted([erased, at(2, DEVICE_REGISTERED, "thief", name="old"), registered(3, "thief")]) == {"a"}


@pytest.mark.parametrize("kind", sorted(DECISION_TYPES))
def test_who_is_not_admitted_takes_no_decision_of_another_device_and_no_registration(kind: str) -> None:
    log = [registered(1, "a"), registered(2, "b"), registered(3, "thief")]
    registry = DeviceRegistry.of([*log, at(4, DEVICE_ADMITTED, "a", device_ids=["b"])])
    named = at(5, kind, "a", said="x")
    request = at(6, PAYLOAD_FORGOTTEN, "thief", event_ids=["evt_5"])
    assert registry.is_unauthorised(request, named)
    assert not registry.is_unauthorised(replace(request, device_id="b"), named)
    assert registry.is_unauthorised(replace(request, device_id="a", extra={UNPROVEN_FIELD: True}), named)
    assert not registry.is_unauthorised(request, replace(named, payload={})), "nothing is left to take"
    own = replace(named, device_id="thief")
    assert registry.is_unauthorised(request, own) == (kind == DEVICE_REGISTERED)


def test_an_ordinary_text_is_no_decision() -> None:
    registry = DeviceRegistry.of([registered(1, "a"), registered(2, "b")])
    request = at(6, PAYLOAD_FORGOTTEN, "b", event_ids=["evt_5"])
    for kind in (MEMORY_FACT, EXCHANGE_RECORDED, MESSAGE, ENTRY_ADDED):
        assert not registry.is_unauthorised(request, at(5, kind, "a", text="x"))


def test_what_is_not_proven_says_nothing_about_devices() -> None:
    forged = [at(3, DEVICE_ADMITTED, "a", device_ids=["b"]), at(4, DEVICE_REVOKED, "a", device_id="a")]
    forged = [replace(one, extra={UNPROVEN_FIELD: True}) for one in forged]
    assert admitted([registered(1, "a"), *forged]) == {"a"}


def test_a_name_that_the_user_gave_outlives_the_devices_own() -> None:
    log = [registered(1, "a"), at(2, DEVICE_RENAMED, "a", device_id="a", name="书房")]
    log.append(at(3, DEVICE_REGISTERED, "a", name="new-host", public_key="ed25519:new"))
    found = DeviceRegistry.of(log).device("a")
    assert (found.name, found.own_name, found.keys) == ("书房", "new-host", frozenset({"ed25519:a", "ed25519:new"}))


@given(st.permutations(range(10)))
def test_the_order_of_arrival_does_not_matter(order: list[int]) -> None:
    log = [registered(1, "a"), registered(2, "b"), registered(3, "c"), registered(4, "d")]
    log += [at(5, DEVICE_ADMITTED, "a", device_ids=["b"]), at(6, DEVICE_ADMITTED, "b", device_ids=["c"])]
    log += [at(7, DEVICE_REVOKED, "c", device_id="b"), at(8, DEVICE_ADMITTED, "c", device_ids=["d"])]
    log += [at(9, DEVICE_REVOKED, "b", day=-1, device_id="c"), at(10, DEVICE_RENAMED, "d", device_id="a", name="d")]
    assert DeviceRegistry.of([log[number] for number in order]) == DeviceRegistry.of(log)
