"""Folding old events loses nothing, and readers and writers do not notice it."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.cloud.fixtures import Cloud as LocalCloud
from tests.integration.sql.connections import Account, Cloud, Json, Reader, as_role, call, event, open_cloud, refusal


@pytest.fixture
def cloud(local_cloud: LocalCloud) -> Iterator[Cloud]:
    with open_cloud(local_cloud.database_url) as opened:
        yield opened


@pytest.fixture
def user(cloud: Cloud) -> Account:
    account = cloud.account()
    account.register()
    return account


def as_admin(cloud: Cloud, function: str, **arguments: Any) -> Any:
    with as_role(cloud.connect(), "service_role", {"role": "service_role"}) as cursor:
        return call(cursor, function, **arguments)


def fold(cloud: Cloud, user: Account, **more: Any) -> Json:
    answer: Json = as_admin(cloud, "ai_memory_admin_checkpoint", p_user=user.user_id, **more)
    return answer


def prune(cloud: Cloud, user: Account, most: int = 5000) -> int:
    return int(as_admin(cloud, "ai_memory_admin_prune", p_user=user.user_id, p_most=most))


def fill(user: Account, count: int, *, start: int = 1, **more: Any) -> list[Json]:
    events = [event(start + n, **more) for n in range(count)]
    for first in range(0, count, 500):
        user.sync(events[first : first + 500], limit=0)
    return events


def everything(user: Account, *, limit: int = 1000, device: str = "d1", replica: str = "r1") -> list[Json]:
    reader = Reader(user, device=device, replica=replica)
    while reader.pull(limit=limit)["head"] > reader.after:
        pass
    return reader.events


def forget_devices(cloud: Cloud, user: Account) -> None:
    """All devices fell silent long ago."""
    cloud.admin.execute(
        "update public.ai_memory_devices set last_seen_at = now() - interval '90 days' where user_id = %s",
        [user.user_id],
    )


def folded(cloud: Cloud, user: Account, **more: Any) -> Json:
    """Fold all there is and remove the rows."""
    forget_devices(cloud, user)
    answer = fold(cloud, user, **more)
    prune(cloud, user)
    return answer


def rows(cloud: Cloud, user: Account) -> int:
    return int(cloud.value("select count(*) from public.ai_memory_events where user_id = %s", user.user_id))


def sizes(cloud: Cloud, user: Account) -> Sequence[int]:
    query = (
        "select jsonb_array_length(events) from public.ai_memory_checkpoints where user_id = %s order by through_seq"
    )
    return [row[0] for row in cloud.admin.execute(query.encode(), [user.user_id])]


# --- reading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 7, 500, 1000])
def test_a_new_device_gets_what_was_folded_word_for_word(cloud: Cloud, user: Account, limit: int) -> None:
    fill(user, 30, payload={"text": "小白 \\u0000 \"'", "n": [2**80, 1.5]}, unknown={"a": None})
    fill(user, 1, start=31, project_id=None, local_date=None)
    before = everything(user)
    assert folded(cloud, user)["floor"] == 31
    assert rows(cloud, user) == 0
    fill(user, 3, start=32)
    user.register("d2", "r2")
    found = everything(user, limit=limit, device="d2", replica="r2")
    assert found[:31] == before
    assert [e["seq"] for e in found[31:]] == [32, 33, 34]


def test_a_device_of_long_ago_goes_on_where_it_was_and_misses_nothing(cloud: Cloud, user: Account) -> None:
    fill(user, 40)
    before = everything(user)
    old = Reader(user)
    old.pull(limit=10)
    folded(cloud, user)
    fill(user, 5, start=41)
    while old.pull(limit=4)["head"] > old.after:
        pass
    assert old.events[:40] == before
    assert old.after == 45


@pytest.mark.parametrize("after", [5, 10, 19, 20])
def test_a_cursor_that_does_not_fit_below_the_floor_is_reset_and_refetches_everything(
    cloud: Cloud, user: Account, after: int
) -> None:
    fill(user, 20)
    folded(cloud, user)
    fill(user, 2, start=21)
    epoch = user.sync(limit=0)["epoch"]
    answer = user.sync(after=after, after_event="evt_other", epoch=epoch)
    assert (answer["reset"], answer["floor"], answer["events"]) == (True, 0, [])
    assert len(everything(user)) == 22


def test_a_device_at_the_floor_is_not_reset(cloud: Cloud, user: Account) -> None:
    fill(user, 20)
    reader = Reader(user)
    reader.pull()
    folded(cloud, user)
    assert reader.pull()["events"] == []


def test_pages_of_a_checkpoint_are_cut_by_bytes_and_never_empty(cloud: Cloud, user: Account) -> None:
    for start in (1, 31):
        fill(user, 30, start=start, payload={"text": "x" * 60_000})
    folded(cloud, user)
    assert max(sizes(cloud, user)) <= 9
    reader = Reader(user)
    while reader.after < 60:
        assert 0 < len(reader.pull(limit=1000)["events"]) <= 18


# --- writing ------------------------------------------------------------------------------------------------


def test_a_folded_event_sent_again_has_its_number_and_burns_none(cloud: Cloud, user: Account) -> None:
    events = fill(user, 20)
    folded(cloud, user)
    answer = user.sync([events[3], event(21), events[19]])
    assert [number for _, number in answer["acked"]] == [4, 21, 20]
    assert answer["head"] == 21
    rehomed = events[4] | {"replica_id": "r9", "replica_seq": 77}
    assert user.sync([rehomed])["acked"] == [[events[4]["event_id"], 5]]


def test_a_number_of_a_replica_stays_taken_when_it_is_folded(cloud: Cloud, user: Account) -> None:
    fill(user, 20)
    folded(cloud, user)
    answer = user.sync([event(5)])
    assert (answer["error"], answer["acked"], answer["head"]) == ("device_forked", [], 20)
    assert "error" not in user.sync([event(5, replica="r2")])


def test_the_same_id_and_number_of_another_user_are_not_his(cloud: Cloud, user: Account) -> None:
    events = fill(user, 5)
    folded(cloud, user)
    other = cloud.account()
    other.register()
    assert [number for _, number in other.sync(events[2:4])["acked"]] == [1, 2]


# --- forgetting ---------------------------------------------------------------------------------------------


def test_forgetting_reaches_rows_and_checkpoints_in_any_state_of_folding(cloud: Cloud, user: Account) -> None:
    events = fill(user, 10, payload={"text": "秘密"}, hint="秘密")
    forget_devices(cloud, user)
    fold(cloud, user)  # not pruned: each event is there twice
    first = Jsonb([events[2]["event_id"]])
    assert user.call("ai_memory_forget", p_device_id="d1", p_event_ids=first) == 1
    prune(cloud, user)
    fill(user, 1, start=11, payload={"text": "秘密"}, event_id=f"evt_live_{user.user_id}")
    both = Jsonb([events[4]["event_id"], f"evt_live_{user.user_id}", events[2]["event_id"]])
    assert user.call("ai_memory_forget", p_device_id="d1", p_event_ids=both) == 2
    assert user.call("ai_memory_forget", p_device_id="d1", p_event_ids=both) == 0
    blank = [e["seq"] for e in everything(user) if e["payload"] == {} and "hint" not in e and e["forgotten_at"]]
    assert blank == [3, 5, 11]
    folded(cloud, user)
    assert [e["seq"] for e in everything(user) if "forgotten_at" in e] == [3, 5, 11]


def test_an_event_that_says_forgotten_blanks_what_it_names_when_it_arrives(cloud: Cloud, user: Account) -> None:
    events = fill(user, 6, payload={"text": "秘密"})
    folded(cloud, user)
    fill(user, 1, start=7, payload={"text": "秘密"}, event_id=f"evt_live_{user.user_id}")
    named = [events[1]["event_id"], f"evt_live_{user.user_id}", "evt_unknown", 7, None]
    wish = event(8, type="payload_forgotten", payload={"event_ids": named})
    answer = user.sync([wish], after=6, after_event=events[5]["event_id"], epoch=user.sync(limit=0)["epoch"])
    assert [(e["seq"], e["payload"]) for e in answer["events"]] == [(7, {}), (8, wish["payload"])]
    user.sync([wish])  # again: nothing changes
    assert [e["seq"] for e in everything(user) if "forgotten_at" in e] == [2, 7]
    strange: list[Any] = ["x", {}, None]
    for number, value in enumerate(strange, 9):
        odd = event(number, type="payload_forgotten", payload={"event_ids": value})
        assert user.sync([odd])["head"] == number


def test_what_another_user_names_is_not_forgotten(cloud: Cloud, user: Account) -> None:
    events = fill(user, 4)
    folded(cloud, user)
    other = cloud.account()
    other.register()
    fill(other, 5, start=11)
    folded(cloud, other)
    own = everything(other)[1]["event_id"]
    assert other.call("ai_memory_forget", p_device_id="d1", p_event_ids=Jsonb([own])) == 1
    other.sync([event(1, type="payload_forgotten", payload={"event_ids": [e["event_id"] for e in events]})])
    assert other.call("ai_memory_forget", p_device_id="d1", p_event_ids=Jsonb([events[0]["event_id"]])) == 0
    assert [e["payload"] for e in everything(user)] == [e["payload"] for e in events]


# --- how far the floor may rise -----------------------------------------------------------------------------


def test_the_floor_rises_past_no_device_seen_lately(cloud: Cloud, user: Account) -> None:
    fill(user, 20)
    user.register("d2", "r2")
    slow = Reader(user, device="d2", replica="r2")
    slow.pull(limit=5)
    age = (
        "update public.ai_memory_devices set last_seen_at = now() - %s::interval where user_id = %s and device_id = %s"
    )
    cloud.admin.execute(age.encode(), ["2 minutes", user.user_id, "d2"])
    slow.pull(limit=0)
    everything(user)
    cloud.admin.execute(age.encode(), ["2 minutes", user.user_id, "d1"])
    here = everything(user)
    user.sync(after=20, after_event=here[-1]["event_id"], epoch=slow.epoch)
    cloud.admin.execute(age.encode(), ["2 minutes", user.user_id, "d1"])
    user.sync(after=20, after_event=here[-1]["event_id"], epoch=slow.epoch)
    cursors = dict(user.rows("select device_id, cursor_seq from public.ai_memory_devices"))
    assert cursors == {"d1": 20, "d2": 5}
    user.register("d3", "r3")
    middle = Reader(user, device="d3", replica="r3")
    middle.pull(limit=9)
    cloud.admin.execute("update public.ai_memory_devices set cursor_seq = 9 where device_id = 'd3'")
    answer = fold(cloud, user, p_days=30)
    assert (answer["floor"], answer["held_by"], answer["done"]) == (5, "d2", True)
    for device in ("d2", "d3"):
        cloud.admin.execute(age.encode(), ["31 days", user.user_id, device])
    answer = fold(cloud, user, p_days=30)
    assert (answer["floor"], answer["held_by"], answer["done"]) == (20, None, True)
    while slow.pull(limit=3)["head"] > slow.after:
        pass
    assert [e["event_id"] for e in slow.events] == [e["event_id"] for e in here]


def test_a_revoked_device_and_one_that_never_pulled_hold_nothing_back(cloud: Cloud, user: Account) -> None:
    fill(user, 8)
    epoch = user.sync(limit=0)["epoch"]
    user.register("gone", "r3")
    user.call("ai_memory_revoke_device", p_device_id="gone")
    user.rows("insert into public.ai_memory (device_id, content) values ('the-app', '# x')")
    cloud.admin.execute("update public.ai_memory_devices set cursor_seq = 8 where device_id = 'd1'")
    assert fold(cloud, user)["floor"] == 8
    assert user.sync(after=0, epoch=epoch)["head"] == 8


def test_an_idle_poll_writes_nothing_within_the_minute(cloud: Cloud, user: Account) -> None:
    fill(user, 3)
    reader = Reader(user)
    reader.pull()
    reader.pull()  # this one says how far the device has read
    state = "select xmin::text, cursor_seq from public.ai_memory_devices where user_id = %s"
    before = cloud.admin.execute(state.encode(), [user.user_id]).fetchall()
    for _ in range(3):
        reader.pull()
    assert cloud.admin.execute(state.encode(), [user.user_id]).fetchall() == before


def test_a_device_that_starts_again_is_waited_for(cloud: Cloud, user: Account) -> None:
    fill(user, 6)
    epoch = user.sync(limit=0)["epoch"]
    cloud.admin.execute("update public.ai_memory_devices set cursor_seq = 6 where user_id = %s", [user.user_id])
    assert user.sync(after=6, after_event="evt_other", epoch=epoch)["reset"] is True
    assert fold(cloud, user)["floor"] == 0


# --- in steps -----------------------------------------------------------------------------------------------


def test_folding_and_pruning_go_in_bounded_steps_that_may_stop_anywhere(cloud: Cloud, user: Account) -> None:
    fill(user, 1300)
    before = everything(user)
    forget_devices(cloud, user)
    first = fold(cloud, user, p_most=500)
    assert (first["folded"], first["done"], rows(cloud, user)) == (500, False, 1300)
    assert everything(user) == before
    assert prune(cloud, user, 200) == 200
    assert everything(user) == before
    forget_devices(cloud, user)
    assert fold(cloud, user, p_most=5000)["done"] is True
    assert prune(cloud, user, 1000) == 1000
    assert everything(user) == before
    assert prune(cloud, user) == 100
    assert (prune(cloud, user), everything(user) == before, sizes(cloud, user)) == (0, True, [500, 500, 300])


def test_a_small_checkpoint_is_filled_instead_of_followed(cloud: Cloud, user: Account) -> None:
    for start in range(1, 61, 20):
        fill(user, 20, start=start)
        folded(cloud, user)
    assert sizes(cloud, user) == [60]
    assert [e["seq"] for e in everything(user)] == list(range(1, 61))


def test_only_what_a_checkpoint_holds_is_pruned(cloud: Cloud, user: Account) -> None:
    fill(user, 10)
    cloud.admin.execute("update public.ai_memory_heads set floor_seq = 6 where user_id = %s", [user.user_id])
    assert prune(cloud, user) == 0


def test_the_steps_are_the_administrators_alone(cloud: Cloud, user: Account) -> None:
    for function in ("ai_memory_admin_checkpoint", "ai_memory_admin_prune"):
        for role in ("anon", "authenticated"):
            with (
                pytest.raises(psycopg.errors.InsufficientPrivilege),
                as_role(cloud.connect(), role, user.claims) as cursor,
            ):
                call(cursor, function, p_user=user.user_id)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        user.rows("select * from public.ai_memory_checkpoints")
    with pytest.raises(psycopg.Error) as caught:
        as_admin(cloud, "ai_memory_admin_checkpoint", p_user="00000000-0000-0000-0000-000000000000")
    assert refusal(caught.value) == ("22023", {"kind": "no_such_user"})
