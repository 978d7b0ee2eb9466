"""What a device asks a peer for, and what it answers."""

import pytest

from sync.lan.protocol import frames
from sync.lan.protocol.frames import ProtocolError
from sync.lan.protocol.have_want import (
    Action,
    CheckNumbers,
    Holdings,
    PeerConversation,
    Send,
    SendEvents,
    StoreEvents,
)
from sync.lan.protocol.ranges import NumberRanges, union

A, B = "rep_a", "rep_b"


def holdings(epoch: str, events: NumberRanges, erasures: NumberRanges | None = None) -> Holdings:
    requests = erasures or {}
    return Holdings(epoch, union(events, requests), requests, events)


def sent(actions: list[Action]) -> list[frames.Message]:
    return [action.message for action in actions if isinstance(action, Send)]


def have(epoch: str, events: frames.WireRanges, erasures: frames.WireRanges | None = None) -> frames.Have:
    return frames.Have(epoch, erasures or {}, events)


def test_a_conversation_begins_with_what_this_device_offers() -> None:
    talk = PeerConversation(holdings(A, {A: ((1, 5),)}, {A: ((6, 6),)}))
    assert sent(talk.start()) == [have(A, {A: [(1, 5)]}, {A: [(6, 6)]})]


def test_what_is_lacking_is_asked_for_and_nothing_else() -> None:
    talk = PeerConversation(holdings(A, {A: ((1, 5),), B: ((1, 2),)}))
    assert sent(talk.on_message(have(B, {A: [(1, 5)], B: [(1, 4)]}))) == [frames.Want(B, {B: [(3, 4)]})]
    assert not talk.is_level


def test_erasure_requests_are_asked_for_before_anything_else() -> None:
    talk = PeerConversation(holdings(A, {}))
    assert sent(talk.on_message(have(B, {B: [(1, 4)]}, {B: [(5, 5)]}))) == [frames.Want(B, {B: [(5, 5)]})]
    assert sent(talk.on_message(frames.Sent(B))) == [frames.Want(B, {B: [(1, 4)]})]


def test_no_event_is_sent_before_the_peers_erasure_requests_are_here() -> None:
    own = holdings(A, {A: ((1, 3),)})
    talk = PeerConversation(own)
    assert talk.on_message(frames.Want(A, {A: [(1, 3)]})) == [], "it is not known yet what the peer has erased"
    assert sent(talk.on_message(have(B, {}, {B: [(1, 1)]}))) == [frames.Want(B, {B: [(1, 1)]})]
    assert talk.on_message(frames.Sent(B)) == [SendEvents(A, {A: ((1, 3),)})]


def test_erasure_requests_are_sent_at_once_so_that_two_devices_never_wait_for_each_other() -> None:
    talk = PeerConversation(holdings(A, {A: ((1, 3),)}, {A: ((4, 4),)}))
    talk.on_message(have(B, {}, {B: [(1, 1)]}))
    assert talk.on_message(frames.Want(A, {A: [(4, 4)]})) == [SendEvents(A, {A: ((4, 4),)})]


def test_only_what_is_offered_is_sent() -> None:
    talk = PeerConversation(Holdings(A, {A: ((1, 9),)}, {}, {A: ((1, 3), (7, 9))}))
    talk.on_message(have(B, {}))
    assert talk.on_message(frames.Want(A, {A: [(1, 9)], "rep_x": [(1, 5)]})) == [SendEvents(A, {A: ((1, 3), (7, 9))})]


def test_a_request_for_numbers_of_another_epoch_is_answered_with_those_of_this_one() -> None:
    talk = PeerConversation(holdings(A, {A: ((1, 3),)}))
    talk.on_message(have(B, {}))
    assert talk.on_message(frames.Want("rep_former", {"rep_former": [(1, 3)]})) == talk.start()


def test_events_of_another_epoch_are_not_stored() -> None:
    talk = PeerConversation(holdings(A, {}))
    talk.on_message(have(B, {B: [(1, 3)]}))
    talk.on_message(have("rep_new", {"rep_new": [(1, 3)]}))
    assert talk.on_message(frames.Events(B, [{}])) == []
    assert talk.on_message(frames.Sent(B)) == []


def test_a_new_epoch_makes_this_device_ask_again() -> None:
    talk = PeerConversation(holdings(A, {}))
    talk.on_message(have(B, {B: [(1, 1)]}))
    talk.on_message(frames.Sent(B))
    assert sent(talk.on_holdings(holdings(A, {}))) == []
    assert sent(talk.on_message(have(B, {B: [(1, 1)]}))) == [], "it did not come, and is not asked for again"
    assert sent(talk.on_message(have("rep_new", {B: [(1, 1)]}))) == [frames.Want("rep_new", {B: [(1, 1)]})]


def test_events_that_were_not_asked_for_are_an_error() -> None:
    talk = PeerConversation(holdings(A, {}))
    talk.on_message(have(B, {}))
    with pytest.raises(ProtocolError):
        talk.on_message(frames.Events(B, [{"event_id": "evt_1"}]))


def test_what_came_is_stored_with_what_was_asked_for() -> None:
    talk = PeerConversation(holdings(A, {}))
    talk.on_message(have(B, {B: [(1, 2)]}))
    assert talk.on_message(frames.Events(B, [{"event_id": "evt_1"}])) == [
        StoreEvents(({"event_id": "evt_1"},), {B: ((1, 2),)})
    ]


def test_a_peer_that_offers_without_end_and_sends_nothing_is_asked_a_bounded_number_of_times() -> None:
    talk = PeerConversation(holdings(A, {}))
    asked = len(sent(talk.on_message(have(B, {B: [(1, frames.MAX_NUMBER)]}))))
    for _ in range(1_000):
        asked += len(sent(talk.on_message(frames.Sent(B))))
    assert asked <= 100


def test_news_of_the_log_is_told_once() -> None:
    talk = PeerConversation(holdings(A, {}))
    more = holdings(A, {A: ((1, 1),)})
    assert sent(talk.on_holdings(more)) == [have(A, {A: [(1, 1)]})]
    assert talk.on_holdings(more) == []


def test_the_last_numbers_of_a_peer_are_compared_with_the_log() -> None:
    talk = PeerConversation(holdings(A, {A: ((1, 2),)}))
    proven = {"device-a": {A: [(1, 2)]}}
    talk.on_holdings(Holdings(A, {A: ((1, 2),)}, proven={"device-a": {A: ((1, 2),)}}))
    compared = talk.on_message(frames.Have(B, {}, {A: [(1, 2)]}, {A: (2, "evt_2")}, proven))
    assert compared == [CheckNumbers({A: (2, "evt_2")}, {"device-a": {A: ((1, 2),)}})]


def test_what_is_proven_there_and_not_here_is_asked_for_if_its_device_is_known() -> None:
    own = Holdings(
        A,
        {B: ((1, 9),)},
        proven={"device-b": {B: ((1, 3), (7, 9))}},
        unproven={"device-c": {B: ((9, 9),)}},
    )
    talk = PeerConversation(own)
    talk.provable = ("device-b",)
    numbers: frames.WireRanges = {B: [(1, 9)]}
    claimed: dict[str, frames.WireRanges] = {"device-b": {B: [(1, 8)]}, "device-c": {B: [(9, 9)]}}
    asked = sent(talk.on_message(frames.Have(B, {}, numbers, {}, claimed)))
    assert asked == [frames.Want(B, {B: [(4, 6)]})]
    assert sent(talk.on_message(frames.Sent(B))) == [], "it is asked for once"


def test_nothing_is_asked_for_while_the_peer_may_bring_no_more() -> None:
    talk = PeerConversation(holdings(A, {}))
    talk.may_ask = lambda: False
    assert sent(talk.on_message(have(B, {B: [(1, 2)]}))) == []
    assert not talk.is_level


def test_more_events_than_were_asked_for_end_the_conversation() -> None:
    talk = PeerConversation(holdings(A, {}))
    talk.on_message(have(B, {B: [(1, 2)]}))
    talk.on_message(frames.Events(B, [{}, {}]))
    with pytest.raises(ProtocolError):
        talk.on_message(frames.Events(B, [{}]))


def test_two_devices_with_the_same_events_are_level() -> None:
    talk = PeerConversation(holdings(A, {A: ((1, 2),)}))
    assert not talk.is_level
    talk.on_message(have(B, {A: [(1, 2)]}))
    assert talk.is_level
