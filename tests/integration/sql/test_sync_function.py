"""ai_memory_sync on a real PostgreSQL: numbers, races, forks, resets, documents, limits.

Concurrent transactions use two connections that really block each other.
"""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.cloud.fixtures import Cloud as LocalCloud
from tests.integration.sql.connections import (
    WAIT_SECONDS,
    Account,
    Cloud,
    Json,
    Reader,
    call,
    document,
    event,
    eventually,
    open_cloud,
    refusal,
)


@pytest.fixture
def cloud(local_cloud: LocalCloud) -> Iterator[Cloud]:
    with open_cloud(local_cloud.database_url) as opened:
        yield opened


@pytest.fixture
def user(cloud: Cloud) -> Account:
    account = cloud.account()
    account.register()
    return account


def numbers(answer: Json) -> list[int]:
    return [seq for _, seq in answer["acked"]]


# --- numbers ------------------------------------------------------------------------------------------------


def test_events_are_numbered_densely_and_acknowledged_in_the_order_of_the_batch(user: Account) -> None:
    first = [event(n) for n in range(1, 31)]
    answer = user.sync(first)
    assert answer["acked"] == [[e["event_id"], n] for n, e in enumerate(first, 1)]
    assert (answer["head"], answer["floor"], answer["reset"]) == (30, 0, False)
    assert numbers(user.sync([event(31), event(32)])) == [31, 32]


def test_a_known_event_keeps_its_number_and_burns_none(user: Account) -> None:
    known = [event(1), event(2)]
    user.sync(known)
    new = event(3)
    answer = user.sync([known[1], new, known[0]])
    assert answer["acked"] == [[known[1]["event_id"], 2], [new["event_id"], 3], [known[0]["event_id"], 1]]
    assert answer["head"] == 3


def test_sending_everything_again_changes_nothing(user: Account) -> None:
    batch = [event(n) for n in range(1, 6)]
    before = user.sync(batch)
    after = user.sync([e | {"replica_id": "r2", "local_date": None} for e in batch])
    assert after["acked"] == before["acked"]
    assert after["head"] == 5
    assert [e["payload"] for e in after["events"]] == [e["payload"] for e in batch]


def test_one_event_twice_in_a_batch_is_stored_once(user: Account) -> None:
    twice = event(1)
    answer = user.sync([twice, event(2), twice])
    assert numbers(answer) == [1, 2]
    assert len(answer["events"]) == 2


def test_an_event_rehomed_to_a_new_replica_keeps_its_number(user: Account) -> None:
    sent = event(7)
    user.sync([sent])
    user.register(replica="r2", p_takeover="r1")
    rehomed = sent | {"replica_id": "r2", "replica_seq": 1}
    assert user.sync([rehomed], replica="r2")["acked"] == [[sent["event_id"], 1]]


def test_a_refused_batch_leaves_no_hole(user: Account) -> None:
    with pytest.raises(psycopg.DataError):
        user.sync([event(1), event(2, hlc="yesterday")])
    assert numbers(user.sync([event(1)])) == [1]


def test_two_users_are_numbered_apart(cloud: Cloud, user: Account) -> None:
    other = cloud.account()
    other.register()
    user.sync([event(1), event(2)])
    assert numbers(other.sync([event(1)])) == [1]


# --- races --------------------------------------------------------------------------------------------------


def test_a_reader_misses_nothing_when_the_earlier_transaction_commits_later(cloud: Cloud, user: Account) -> None:
    later, reading = cloud.again(user), Reader(cloud.again(user))
    user.register("d2", "r2")
    with ThreadPoolExecutor(1) as pool:
        with user.request() as open_transaction:
            arguments = {"p_device_id": "d1", "p_replica_id": "r1", "p_events": Jsonb([event(1)])}
            assert call(open_transaction, "ai_memory_sync", **arguments)["head"] == 1
            second = event(1, replica="r2", device_id="d2")
            waiting = pool.submit(later.sync, [second], device="d2", replica="r2")
            eventually(lambda: cloud.is_blocked(later), "the second writer waits for the head row")
            assert reading.pull()["events"] == []  # and the reader does not wait
        assert numbers(waiting.result(WAIT_SECONDS)) == [2]
    reading.pull()
    assert [e["seq"] for e in reading.events] == [1, 2]


def test_a_writer_does_not_wait_for_another_user(cloud: Cloud, user: Account) -> None:
    other = cloud.account()
    other.register()
    with user.request() as open_transaction:
        call(open_transaction, "ai_memory_sync", p_device_id="d1", p_replica_id="r1", p_events=Jsonb([event(1)]))
        assert numbers(other.sync([event(1)])) == [1]


def test_a_storm_of_writers_leaves_readers_without_a_gap(cloud: Cloud, user: Account) -> None:
    writers, batches, size = 6, 15, 3
    names = [(f"dev{w}", f"rep{w}") for w in range(writers)]
    for device, replica in names:
        user.register(device, replica)
    done = threading.Event()

    def write(device: str, replica: str) -> list[str]:
        account, sent = cloud.again(user), []
        for start in range(0, batches * size, size):
            batch = [event(start + n, replica=replica, device_id=device) for n in range(1, size + 1)]
            account.sync(batch, device=device, replica=replica, limit=0)
            sent += [e["event_id"] for e in batch]
        return sent

    def read() -> list[Json]:
        reader = Reader(cloud.again(user))
        while not done.is_set():
            reader.pull(limit=7)
        while reader.pull()["events"]:
            pass
        return reader.events

    with ThreadPoolExecutor(writers + 2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            sent = [pool.submit(write, *name) for name in names]
            written = {event_id for future in sent for event_id in future.result(60)}
        finally:
            done.set()
        for future in readers:
            seen = [e["event_id"] for e in future.result(60)]
            assert len(seen) == len(set(seen)) == writers * batches * size
            assert set(seen) == written


def test_the_same_batch_sent_twice_at_once_is_stored_once(cloud: Cloud, user: Account) -> None:
    batch = [event(n) for n in range(1, 51)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda account: account.sync(batch), [cloud.again(user) for _ in range(4)]))
    assert all(answer["acked"] == answers[0]["acked"] for answer in answers)
    assert cloud.value("select count(*) from public.ai_memory_events where user_id = %s", user.user_id) == 50


# --- forks and conflicts ------------------------------------------------------------------------------------


def test_one_number_of_a_replica_under_two_ids_is_a_fork_and_nothing_is_applied(cloud: Cloud, user: Account) -> None:
    user.sync([event(1), event(2)])
    answer = user.sync([event(3), event(2)], snapshot=document("# clone\n", 3))
    assert answer["error"] == "device_forked"
    assert (answer["acked"], answer["events"], answer["reset"], answer["head"]) == ([], [], False, 2)
    assert cloud.value("select count(*) from public.ai_memory where user_id = %s", user.user_id) == 0
    assert user.sync([])["head"] == 2


def test_a_forked_replica_takes_the_device_over_and_the_former_replica_gets_a_conflict(user: Account) -> None:
    user.sync([event(1)])
    assert user.register(replica="r2")["error"] == "device_conflict"
    assert user.sync([event(1, replica="r2")], replica="r2")["error"] == "device_conflict"
    assert user.register(replica="r2", p_takeover="somebody else")["error"] == "device_conflict"
    assert "error" not in user.register(replica="r2", p_takeover="r1")
    assert numbers(user.sync([event(1, replica="r2")], replica="r2")) == [2]
    former = user.sync([event(2)], snapshot=document("# old\n", 2))
    assert (former["error"], former["events"], former["head"]) == ("device_conflict", [], 2)


def test_a_replica_that_fell_silent_loses_its_device_to_the_next(cloud: Cloud, user: Account) -> None:
    silence = "update public.ai_memory_devices set last_seen_at = now() - interval '11 minutes' where user_id = %s"
    cloud.admin.execute(silence.encode(), [user.user_id])
    assert numbers(user.sync([event(1, replica="r2")], replica="r2")) == [1]
    assert user.sync([])["error"] == "device_conflict"


def test_an_earlier_replica_of_the_device_may_be_pushed_again(user: Account) -> None:
    user.register(replica="r2", p_takeover="r1")
    assert numbers(user.sync([event(4, replica="r1"), event(1, replica="r2")], replica="r2")) == [1, 2]


# --- reset --------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(user: Account) -> Reader:
    user.sync([event(n) for n in range(1, 11)])
    reader = Reader(user)
    reader.pull()
    return reader


def poll(reader: Reader, **changes: Any) -> Json:
    place: Json = {"after": reader.after, "after_event": reader.after_event, "epoch": reader.epoch}
    return reader.account.sync(**(place | changes))


def test_a_cursor_that_fits_is_not_reset(filled: Reader) -> None:
    assert (poll(filled)["reset"], poll(filled)["events"]) == (False, [])


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"epoch": "another"}, id="another epoch"),
        pytest.param({"epoch": None}, id="a cursor without an epoch"),
        pytest.param({"after": 11}, id="past the head"),
        pytest.param({"after_event": "evt_other"}, id="another event at the cursor"),
        pytest.param({"after_event": None}, id="no event named at the cursor"),
        pytest.param({"after": -1}, id="below the floor"),
    ],
)
def test_a_cursor_that_does_not_fit_is_reset(filled: Reader, changes: Json) -> None:
    answer = poll(filled, **changes)
    assert (answer["reset"], answer["events"], answer["head"]) == (True, [], 10)


def test_below_the_floor_is_reset_and_the_floor_itself_is_not(cloud: Cloud, filled: Reader) -> None:
    user_id = filled.account.user_id
    cloud.admin.execute("update public.ai_memory_heads set floor_seq = 4 where user_id = %s", [user_id])
    cloud.admin.execute("delete from public.ai_memory_events where user_id = %s and seq <= 4", [user_id])
    below = poll(filled, after=3)
    assert (below["reset"], below["floor"]) == (True, 4)
    assert poll(filled, after=0, epoch=None)["reset"] is True
    refetched = poll(filled, after=4, after_event=None)
    assert [e["seq"] for e in refetched["events"]] == [5, 6, 7, 8, 9, 10]


def test_a_push_on_reset_is_applied_and_cannot_hide_that_the_server_forgot(cloud: Cloud, filled: Reader) -> None:
    user_id = filled.account.user_id
    cloud.admin.execute("delete from public.ai_memory_events where user_id = %s and seq > 8", [user_id])
    cloud.admin.execute("update public.ai_memory_heads set seq = 8 where user_id = %s", [user_id])
    # the forgotten event comes back to its old number, but the event before it is another one now
    returned = {key: value for key, value in filled.events[9].items() if key not in {"seq", "server_ts"}}
    answer = poll(filled, events=[event(21), returned])
    assert (answer["reset"], answer["events"], answer["head"]) == (True, [], 10)
    assert numbers(answer) == [9, 10]


# --- the device's document ----------------------------------------------------------------------------------


def content(cloud: Cloud, user: Account) -> Any:
    return cloud.value("select content from public.ai_memory where user_id = %s", user.user_id)


def test_a_document_is_written_only_if_it_is_newer_for_its_replica(cloud: Cloud, user: Account) -> None:
    assert user.sync(snapshot=document("# two\n", 2))["snapshot"] == "written"
    assert user.sync(snapshot=document("# one\n", 1))["snapshot"] == "kept"
    assert user.sync(snapshot=document("# two\n", 2))["snapshot"] == "kept"
    assert user.sync(snapshot=document("# also two\n", 2))["snapshot"] == "stale"
    assert content(cloud, user) == "# two\n"
    assert user.sync(snapshot=document("# three\n", 3))["snapshot"] == "written"
    user.register(replica="r2", p_takeover="r1")
    assert user.sync(replica="r2", snapshot=document("# restored\n", 1))["snapshot"] == "written"
    assert content(cloud, user) == "# restored\n"
    assert "snapshot" not in user.sync()


def test_under_the_same_number_a_text_goes_over_the_one_it_names_and_stays_ours(cloud: Cloud, user: Account) -> None:
    user.sync(snapshot=document("# one, two\n", 2))
    seen = document("# one, two\n", 2)["content_sha256"]
    shorter = document("# one\n", 2, base_sha256=seen)
    assert user.sync(snapshot=shorter)["snapshot"] == "written"
    assert "snapshot" not in user.sync(), "not foreign"
    assert user.sync(snapshot=document("# one, two\n", 2, base_sha256=seen))["snapshot"] == "stale"
    assert content(cloud, user) == "# one\n"
    user.rows("update public.ai_memory set content = %s", "# one, two\n")
    assert user.sync()["snapshot"] == "foreign"
    ours = document("# one\n", 2, base_sha256=shorter["content_sha256"])
    assert user.sync(snapshot=ours)["snapshot"] == "foreign", "the app's text was not read, though it is as one of ours"


def test_text_of_the_original_app_is_not_overwritten_unseen(cloud: Cloud, user: Account) -> None:
    user.sync(snapshot=document("# ours\n", 1))
    user.rows("update public.ai_memory set content = %s", "# the app's\n")
    assert user.sync(snapshot=document("# ours, newer\n", 2))["snapshot"] == "foreign"
    assert content(cloud, user) == "# the app's\n"
    seen = document("# the app's\n", 0)["content_sha256"]
    merged = document("# both\n", 2, base_sha256=seen)
    assert user.sync(snapshot=merged)["snapshot"] == "written"
    assert content(cloud, user) == "# both\n"


@pytest.mark.parametrize(
    "bad",
    [
        document("x" * 1_048_577, 1),
        document("# text\n", 1, content_sha256="0" * 64),
        document("# text\n", -1),
        document("# text\n", 1) | {"content": None},
    ],
    ids=["too large", "another hash", "a bad number", "no content"],
)
def test_a_bad_document_is_refused_as_such(user: Account, bad: Json) -> None:
    with pytest.raises(psycopg.Error) as caught:
        user.sync([event(1)], snapshot=bad)
    assert refusal(caught.value) == ("22023", {"kind": "bad_snapshot", "field": "p_snapshot"})


def test_a_device_clock_of_the_future_does_not_reach_updated_at(cloud: Cloud, user: Account) -> None:
    user.sync(snapshot=document("# text\n", 1, updated_at="2099-01-01T00:00:00Z"))
    assert cloud.value("select updated_at <= now() from public.ai_memory where user_id = %s", user.user_id)


# --- arguments that arrive encoded twice --------------------------------------------------------------------


def test_events_and_document_may_be_json_strings(cloud: Cloud, user: Account) -> None:
    answer = user.call(
        "ai_memory_sync",
        p_device_id="d1",
        p_replica_id="r1",
        p_events=Jsonb(json.dumps([event(1), event(2)])),
        p_snapshot=Jsonb(json.dumps(document("# 记忆\n", 2))),
    )
    assert (numbers(answer), answer["snapshot"]) == ([1, 2], "written")
    assert content(cloud, user) == "# 记忆\n"
    missing = user.call("ai_memory_sync", p_device_id="d1", p_replica_id="r1", p_events=Jsonb(None))
    assert missing["acked"] == []
