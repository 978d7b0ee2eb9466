"""Records of a peer are checked as the server checks those of a device."""

import pytest

from sync.lan.protocol.frames import ProtocolError
from sync.lan.protocol.ranges import NumberRanges
from sync.lan.protocol.records import PART_BYTES, parse_records, parts_of
from sync.log.envelope import to_wire
from tests.support import event

ASKED: NumberRanges = {"rep_b": ((1, 1),)}


def test_a_record_is_the_event_that_was_sent() -> None:
    sent = event(1, replica="rep_b")
    assert parse_records([to_wire(sent)], ASKED) == [sent]


@pytest.mark.parametrize(
    "wrong",
    [
        {"event_id": ""},
        {"event_id": "x" * 129},
        {"hlc": "yesterday"},
        {"type": "x\n"},
        {"payload": {"text": "x" * 70_000}},
        {"payload": {"text": "a\u0000b"}},
        {"utc_offset": 100_000},
        {"schema_version": 10**40},
        {"ts": "x" * 65},
        {"device_id": None},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_bad_record_is_left_out_and_keeps_no_other_away(wrong: dict[str, object]) -> None:
    good = event(1, replica="rep_b")
    assert parse_records([{**to_wire(good), **wrong}, to_wire(good)], ASKED) == [good]


@pytest.mark.parametrize("wrong", [{"replica_seq": 2}, {"replica_id": "rep_other"}], ids=["number", "replica"])
def test_a_record_that_was_not_asked_for_is_refused_with_its_frame(wrong: dict[str, object]) -> None:
    good = to_wire(event(1, replica="rep_b"))
    with pytest.raises(ProtocolError):
        parse_records([good, {**good, **wrong}], ASKED)


@pytest.mark.parametrize("text", [r"jsonb refuses \u0000", r"\\u0000", "\\" * 3 + "u0000"])
def test_a_text_about_nul_is_a_text(text: str) -> None:
    sent = event(1, replica="rep_b", payload={"text": text})
    assert parse_records([to_wire(sent)], ASKED) == [sent]


def test_events_are_sent_in_parts_that_fit_into_a_frame() -> None:
    events = [event(number, payload={"text": "字" * 20_000}) for number in range(1, 41)]
    parts = list(parts_of(events))
    assert len(parts) > 2
    assert [record["replica_seq"] for part in parts for record in part] == list(range(1, 41))
    assert all(len(str(part).encode()) < 2 * PART_BYTES for part in parts)
