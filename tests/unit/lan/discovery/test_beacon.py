"""What a device announces, and which announcements it tries."""

from datetime import UTC, datetime, timedelta

import pytest

from sync.lan.discovery.beacon import (
    MAX_CANDIDATES,
    POLITE_SECONDS,
    RETRY_BACKOFF,
    AnnouncedDevices,
    addresses_to_try,
    announcement,
    is_known,
    shows_code,
)

NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


def record(account: str, moment: datetime = NOW) -> dict[bytes, bytes | None]:
    return {name.encode(): value.encode() for name, value in announcement(account, moment).items()}


def test_an_announcement_names_no_account_and_is_another_every_day() -> None:
    told = announcement("user-1", NOW)
    assert "user-1" not in str(told)
    assert told != announcement("user-1", NOW + timedelta(days=1))
    assert told == announcement("user-1", NOW + timedelta(hours=11))
    assert told["h"] != announcement("user-2", NOW)["h"]


@pytest.mark.parametrize("hours", [-24, 0, 24])
def test_devices_of_one_account_know_each_other_also_with_a_clock_of_another_day(hours: int) -> None:
    assert is_known(record("user-1", NOW + timedelta(hours=hours)), ["user-0", "user-1"], NOW)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        record("user-2"),
        record("user-1", NOW - timedelta(days=2)),
        {**record("user-1"), b"v": b"2"},
        {b"v": b"1", b"h": None},
        {b"v": b"1", b"h": b"\xff\xfe"},
    ],
    ids=range(6),
)
def test_any_other_announcement_is_ignored(properties: dict[bytes, bytes | None]) -> None:
    assert not is_known(properties, ["user-1"], NOW)


def test_the_device_with_the_smaller_name_calls_first() -> None:
    first, second = AnnouncedDevices("a"), AnnouncedDevices("b")
    first.add("b", ("192.0.2.2",), 1, 0.0)
    second.add("a", ("192.0.2.1",), 1, 0.0)
    assert [candidate.name for candidate in first.take_due(0.0)] == ["b"]
    assert second.take_due(0.0) == []
    assert [candidate.name for candidate in second.take_due(POLITE_SECONDS)] == ["a"]


def test_the_own_announcement_and_one_without_an_address_are_ignored() -> None:
    known = AnnouncedDevices("a")
    known.add("a", ("192.0.2.1",), 1, 0.0)
    known.add("b", (), 1, 0.0)
    known.add("c", ("192.0.2.1",), 0, 0.0)
    assert len(known) == 0
    assert known.seconds_to_next(0.0) is None


def test_a_failure_is_tried_again_later_and_later_and_a_lost_connection_soon() -> None:
    known = AnnouncedDevices("a")
    known.add("b", ("192.0.2.2",), 1, 0.0)
    waits = []
    for _ in range(8):
        known.note_result("b", 0.0, connected=False)
        waits.append(known.seconds_to_next(0.0))
    assert waits[0] == RETRY_BACKOFF.base
    assert waits[-1] == RETRY_BACKOFF.limit
    known.note_result("b", 0.0, connected=True)
    known.try_all_again(0.0)
    assert known.seconds_to_next(0.0) == POLITE_SECONDS


def test_the_same_announcement_again_changes_nothing_and_a_new_address_is_tried_at_once() -> None:
    known = AnnouncedDevices("a")
    known.add("b", ("192.0.2.2",), 1, 0.0)
    known.note_result("b", 0.0, connected=True)
    known.add("b", ("192.0.2.2",), 1, 0.0)
    assert known.take_due(0.0) == []
    known.add("b", ("192.0.2.9",), 1, 0.0)
    assert [candidate.addresses for candidate in known.take_due(0.0)] == [("192.0.2.9", "192.0.2.2")]


def test_a_device_that_announces_its_addresses_in_turn_is_tried_later_and_later() -> None:
    known = AnnouncedDevices("a")
    for number in range(20):
        known.add("b", (f"192.0.2.{number % 2}",), 1, 0.0)
        known.note_result("b", 0.0, connected=False)
    assert known.seconds_to_next(0.0) == RETRY_BACKOFF.limit
    known.add("b", ("192.0.2.1",), 1, 0.0)
    assert known.take_due(0.0) == []


def test_a_device_that_announces_several_addresses_is_tried_at_each_of_them() -> None:
    known = AnnouncedDevices("a")
    for number in range(6):
        known.add("b", (f"192.0.2.{number}",), 1, 0.0)
    assert [candidate.addresses for candidate in known.take_due(0.0)] == [tuple(f"192.0.2.{n}" for n in (5, 4, 3, 2))]
    known.add("b", ("192.0.2.7",), 2, 0.0)
    known.note_result("b", 0.0, connected=False)
    assert [candidate.addresses for candidate in known.take_due(9.0)] == [("192.0.2.7",)], "another port, another start"


def test_a_device_that_left_is_forgotten_and_the_list_is_bounded() -> None:
    known = AnnouncedDevices("a")
    for number in range(1_000):
        known.add(f"b{number}", ("192.0.2.2",), 1, 0.0)
    assert len(known) == MAX_CANDIDATES
    known.remove("b999")
    assert len(known) == MAX_CANDIDATES - 1


def test_a_guest_that_shows_a_code_announces_that_and_nothing_else() -> None:
    assert announcement("", NOW, shows_code=True) == {"v": "1", "p": "1"}
    assert shows_code({b"v": b"1", b"p": b"1"})
    assert not shows_code(record("user-1"))
    assert not is_known({b"v": b"1", b"p": b"1"}, ["", "user-1"], NOW)


def test_of_too_many_those_that_failed_most_are_forgotten_first() -> None:
    known = AnnouncedDevices("a")
    for number in range(MAX_CANDIDATES):
        known.add(f"b{number}", ("192.0.2.2",), 1, 0.0)
    known.note_result("b7", 0.0, connected=False)
    known.add("c", ("192.0.2.3",), 1, 0.0)
    assert {"b0", "c"} <= {candidate.name for candidate in known.take_due(100.0)}
    assert len(known) == MAX_CANDIDATES
    assert "b7" not in known._candidates


def test_a_device_is_not_tried_twice_at_once() -> None:
    known = AnnouncedDevices("a")
    known.add("b", ("192.0.2.2",), 1, 0.0)
    assert [candidate.name for candidate in known.take_due(0.0)] == ["b"]
    known.try_all_again(0.0)
    assert known.take_due(100.0) == []
    assert known.seconds_to_next(0.0) is None
    known.note_result("b", 0.0, connected=False)
    assert [candidate.name for candidate in known.take_due(100.0)] == ["b"]


@pytest.mark.parametrize(
    ("announced", "heard_at", "tried"),
    [
        (["192.168.1.7", "10.0.0.7"], "192.168.1.2", ["192.168.1.7", "10.0.0.7"]),
        (["8.8.8.8", "127.0.0.1", "224.0.0.251", "0.0.0.0"], "192.168.1.2", []),
        (["130.83.1.7", "192.168.1.7"], "130.83.1.2", ["130.83.1.7"]),
        (["127.0.0.1", "192.168.1.7"], "127.0.0.1", ["127.0.0.1"]),
        ([f"10.0.0.{number}" for number in range(100)], "10.0.0.200", [f"10.0.0.{number}" for number in range(4)]),
    ],
)
def test_an_announcement_sends_this_device_to_no_other_network(
    announced: list[str], heard_at: str, tried: list[str]
) -> None:
    assert list(addresses_to_try(announced, heard_at)) == tried
