"""Batches, halves, and a cursor that never passes an event that it has not seen."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sync.cloud.port import SyncAnswer
from sync.cloud.sync_decisions import check_page, next_batch, split_batch
from sync.errors import CloudUnavailable
from sync.log.envelope import to_wire
from sync.log.model import Event, RemoteCursor
from tests.support import event

ANSWER = SyncAnswer(epoch="e1", head=0, floor=0, reset=False, events=(), acked=(), server_time="2026-02-02T10:00:00Z")


def numbered(*seqs: int) -> tuple[Event, ...]:
    return tuple(event(seq, event_id=f"evt_{seq}", server_seq=seq) for seq in seqs)


@given(
    lengths=st.lists(st.integers(0, 3000), max_size=30),
    most_events=st.integers(1, 20),
    most_bytes=st.integers(1, 20_000),
)
def test_a_batch_is_the_oldest_events_that_fit_and_at_least_one(
    lengths: list[int], most_events: int, most_bytes: int
) -> None:
    pending = [event(n, payload={"text": "x" * length}) for n, length in enumerate(lengths, 1)]
    chosen = next_batch(pending, most_events=most_events, most_bytes=most_bytes)
    assert list(chosen) == pending[: len(chosen)]
    assert len(chosen) <= most_events
    assert bool(chosen) == bool(pending)
    sizes = [len(msgspec.json.encode(to_wire(item))) for item in pending]
    assert len(chosen) == 1 or sum(sizes[: len(chosen)]) <= most_bytes
    if len(chosen) < min(len(pending), most_events):
        assert sum(sizes[: len(chosen) + 1]) > most_bytes


def test_a_batch_holds_events_of_one_device_only() -> None:
    pending = [event(1), event(2), event(3, device="named-by-the-app"), event(4)]
    assert next_batch(pending, most_events=10) == tuple(pending[:2])


@given(count=st.integers(2, 600))
def test_halves_are_two_parts_that_make_the_whole_and_both_get_smaller(count: int) -> None:
    events = numbered(*range(1, count + 1))
    first, second = split_batch(events)
    assert first + second == events
    assert second
    assert 0 <= len(first) - len(second) <= 1


def test_the_cursor_moves_to_the_last_event_that_came() -> None:
    verdict = check_page(
        RemoteCursor(epoch="e1", seq=2, event_id="evt_2"), replace(ANSWER, head=5, events=numbered(3, 4))
    )
    assert (verdict.reset, verdict.caught_up) == (False, False)
    assert (verdict.cursor.seq, verdict.cursor.event_id, verdict.cursor.head) == (4, "evt_4", 5)


def test_an_answer_without_events_leaves_the_cursor_where_it_is() -> None:
    stand = RemoteCursor(epoch="e1", seq=2, event_id="evt_2")
    verdict = check_page(stand, replace(ANSWER, head=2))
    assert verdict.caught_up
    assert (verdict.cursor.seq, verdict.cursor.event_id) == (2, "evt_2")


@pytest.mark.parametrize("seqs", [(4,), (3, 5), (4, 3), (3, 3), (2, 3), (1,)])
def test_a_hole_is_never_passed(seqs: tuple[int, ...]) -> None:
    with pytest.raises(CloudUnavailable, match="hole"):
        check_page(RemoteCursor(epoch="e1", seq=2, event_id="evt_2"), replace(ANSWER, head=9, events=numbered(*seqs)))


def test_an_event_without_a_number_is_never_passed() -> None:
    with pytest.raises(CloudUnavailable):
        check_page(RemoteCursor(), replace(ANSWER, head=1, events=(event(1),)))


@pytest.mark.parametrize(
    ("stand", "answer"),
    [
        (RemoteCursor(epoch="e1", seq=7, event_id="x"), replace(ANSWER, reset=True, floor=3, head=9)),
        (RemoteCursor(epoch="e0", seq=7, event_id="x"), replace(ANSWER, floor=3, head=9, events=numbered(8, 9))),
    ],
    ids=["reset", "epoch"],
)
def test_another_log_is_read_from_its_floor(stand: RemoteCursor, answer: SyncAnswer) -> None:
    verdict = check_page(stand, answer)
    assert (verdict.reset, verdict.caught_up) == (True, False)
    assert (verdict.cursor.epoch, verdict.cursor.seq, verdict.cursor.event_id) == ("e1", 3, None)


def test_the_first_answer_of_all_is_no_reset() -> None:
    verdict = check_page(RemoteCursor(), replace(ANSWER, head=1, events=numbered(1)))
    assert (verdict.reset, verdict.caught_up, verdict.cursor.epoch) == (False, True, "e1")
