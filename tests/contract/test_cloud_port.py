"""One suite for every implementation of the port: the twin in memory, and the Supabase clients on a real project.

What holds here holds in the simulator, and what the simulator relies on is checked here against the real thing.
"""

import base64
import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from sync.cloud.auth_port import AuthSession
from sync.cloud.port import (
    FOREIGN_DOCUMENT,
    STALE_DOCUMENT,
    DeviceFacts,
    DeviceRow,
    SnapshotRow,
    StoredDocument,
    SyncAnswer,
    SyncRequest,
)
from sync.errors import (
    DeviceConflict,
    DeviceForked,
    DeviceKeyInUse,
    DeviceRevoked,
    DeviceUnknown,
    Forbidden,
    LoginRequired,
    Rejected,
)
from sync.log.envelope import to_wire
from sync.log.model import Event
from tests.contract.cloud_backends import AccountHolder, CloudBackend
from tests.support import REDACTOR, event


def facts(replica: str, **more: Any) -> DeviceFacts:
    return replace(DeviceFacts(replica, "书房", "Linux", "0.1.0"), **more)


def key(number: int) -> str:
    """A public key in the one form that is taken."""
    return "ed25519:" + base64.b64encode(bytes([number] * 32)).decode()


def snapshot(content: str, through: int, over: str | None = None) -> SnapshotRow:
    """`over`: the content it may be written over."""
    clean = REDACTOR.clean(content)
    return SnapshotRow(clean, hashed(clean), through, None if over is None else hashed(over))


def hashed(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


@dataclass
class Client:
    """One device of one person."""

    world: CloudBackend
    person: AccountHolder
    session: AuthSession
    device: str = "device-a"
    replica: str = "rep_a"

    async def register(self, **more: Any) -> "Client":
        await self.world.cloud.register_device(self.session, self.device, facts(self.replica, **more))
        return self

    async def devices(self) -> tuple[DeviceRow, ...]:
        return await self.world.cloud.list_devices(self.session)

    async def sync(self, *events: Event, **more: Any) -> SyncAnswer:
        request = SyncRequest(device_id=self.device, replica_id=self.replica, events=events, **more)
        return await self.world.cloud.sync(self.session, request)

    def event(self, number: int, **changes: Any) -> Event:
        return event(number, replica=self.replica, device=self.device, **changes)

    def other(self, device: str, replica: str) -> "Client":
        return dataclasses.replace(self, device=device, replica=replica)


async def signed_in(world: CloudBackend, person: AccountHolder | None = None) -> Client:
    person = person or world.new_person()
    return Client(world, person, await world.cloud.auth.sign_in_with_password(person.contact, person.password))


@pytest.fixture
async def client(backend: CloudBackend) -> Client:
    """A signed-in person with one registered device."""
    return await (await signed_in(backend)).register()


def seqs(events: tuple[Event, ...]) -> list[int | None]:
    return [item.server_seq for item in events]


# --- who is it? (obtaining and keeping a session: test_logins_port.py) -------------------------------------------


@pytest.mark.parametrize("token", ["garbage", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln", ""])
async def test_a_token_that_is_none_is_a_lost_login_and_no_empty_answer(client: Client, token: str) -> None:
    stranger = dataclasses.replace(client, session=replace(client.session, access_token=token))
    for call in (stranger.sync(client.event(1)), stranger.register()):
        with pytest.raises(LoginRequired):
            await call
    assert (await client.sync()).head == 0


# --- devices ------------------------------------------------------------------------------------------------


async def test_a_device_that_never_registered_is_forbidden(backend: CloudBackend) -> None:
    stranger = await signed_in(backend)
    with pytest.raises(Forbidden):
        await stranger.sync(stranger.event(1))


async def test_registering_twice_is_registering_once(client: Client) -> None:
    await client.sync(client.event(1))
    await client.register()
    assert (await client.sync()).head == 1


async def test_a_revoked_device_is_forbidden_and_cannot_register_again(client: Client) -> None:
    client.world.revoke_device(client.person, client.device)
    for call in (client.sync(client.event(1)), client.register()):
        with pytest.raises(Forbidden):
            await call


async def test_the_list_shows_what_devices_said_about_themselves(client: Client) -> None:
    await client.other("device-b", "rep_b").register(public_key=key(1))
    rows = {row.device_id: row for row in await client.devices()}
    assert set(rows) == {"device-a", "device-b"}
    found = rows["device-b"]
    assert (found.name, found.platform, found.app_version, found.public_key) == ("书房", "Linux", "0.1.0", key(1))
    assert found.created_at <= found.last_seen_at
    assert found.revoked_at is None
    assert rows["device-a"].public_key is None


async def test_the_list_is_the_accounts_own_and_never_empty_for_a_lost_login(client: Client) -> None:
    stranger = await signed_in(client.world)
    assert await stranger.devices() == ()
    lost = dataclasses.replace(client, session=replace(client.session, access_token="garbage"))
    with pytest.raises(LoginRequired):
        await lost.devices()


async def test_a_host_name_follows_the_device_and_a_given_name_stays(client: Client) -> None:
    cloud = client.world.cloud
    await client.register(name="新主机")
    assert [row.name for row in await client.devices()] == ["新主机"]
    await cloud.rename_device(client.session, client.device, "  客厅 ")
    await client.register(name="又一个主机名")
    assert [row.name for row in await client.devices()] == ["客厅"]


async def test_a_device_can_be_revoked_by_another_for_ever_and_may_still_be_listed(client: Client) -> None:
    await client.register(public_key=key(2))  # the login is this device's
    other = await client.other("device-b", "rep_b").register(public_key=key(1))
    for _ in range(2):
        await client.world.cloud.revoke_device(client.session, "device-b")
    for call in (
        other.sync(other.event(1)),
        other.register(),
        client.world.cloud.rename_device(client.session, "device-b", "x"),
    ):
        with pytest.raises(DeviceRevoked):
            await call
    rows = {row.device_id: row for row in await other.devices()}
    assert rows["device-b"].revoked_at is not None
    assert rows["device-a"].revoked_at is None
    assert (await client.sync(client.event(1))).head == 1


async def test_a_takeover_needs_the_proof_of_the_devices_key(client: Client) -> None:
    mine, theirs = "a" * 64, "b" * 64
    await client.register(proof=mine)
    copy = client.other("device-a", "rep_b")
    for shown in (None, theirs):
        with pytest.raises(DeviceConflict) as refused:
            await copy.register(takeover="rep_a", proof=shown)
        assert refused.value.holder is None
    await client.sync(client.event(1))
    with pytest.raises(DeviceConflict) as known:
        await copy.register(proof=mine)
    assert known.value.holder == "rep_a"
    await copy.register(takeover="rep_a", proof=mine, proof_next=hashed(theirs))
    with pytest.raises(DeviceConflict):
        await client.register(takeover="rep_b", proof=mine)
    await copy.register(proof=theirs)
    assert (await copy.sync(copy.event(1))).head == 2


async def test_a_device_that_registered_without_a_proof_takes_over_as_before_and_has_one_then(client: Client) -> None:
    copy = await client.other("device-a", "rep_b").register(takeover="rep_a", proof="a" * 64)
    with pytest.raises(DeviceConflict):
        await client.register(takeover="rep_b")
    await copy.register()  # an older client of the same replica
    with pytest.raises(DeviceConflict):
        await client.register(takeover="rep_b")


async def test_an_unknown_device_cannot_be_renamed_or_revoked(client: Client) -> None:
    stranger = await (await signed_in(client.world)).other("device-of-another", "rep_x").register()
    assert stranger.device == "device-of-another"
    cloud = client.world.cloud
    for call in (
        cloud.rename_device(client.session, "device-of-another", "x"),
        cloud.revoke_device(client.session, "device-of-another"),
    ):
        with pytest.raises(DeviceUnknown):
            await call


async def test_a_revoked_key_comes_back_under_no_id_of_the_account(client: Client) -> None:
    await client.register(public_key=key(1))
    await client.world.cloud.revoke_device(client.session, client.device)
    for device in (client.device, "device-b"):
        with pytest.raises(DeviceRevoked):
            await client.other(device, "rep_b").register(public_key=key(1))
    another = await signed_in(client.world, client.person)  # the login of a revoked device registers nothing
    await another.other("device-c", "rep_c").register(public_key=key(2))


async def test_a_key_says_nothing_about_another_account(client: Client) -> None:
    """Public keys are public: revoking one in an account must not lock its holder out of another account."""
    await client.register(public_key=key(1))
    await client.world.cloud.revoke_device(client.session, client.device)
    stranger = await (await signed_in(client.world)).register(public_key=key(1))
    assert (await stranger.sync(stranger.event(1))).head == 1


async def test_a_key_belongs_to_one_device_and_a_device_may_change_it(client: Client) -> None:
    await client.register(public_key=key(1))
    copy = client.other("device-b", "rep_b")
    with pytest.raises(DeviceKeyInUse):
        await copy.register(public_key=key(1))
    assert [row.device_id for row in await client.devices()] == [client.device]
    await copy.register(public_key=key(2))
    await client.register(public_key=key(3))
    await client.register()  # without a key: it keeps the one it has
    assert {row.device_id: row.public_key for row in await client.devices()} == {"device-a": key(3), "device-b": key(2)}


@pytest.mark.parametrize(
    "bad", ["", "ed25519:", key(1) + " ", key(1).removesuffix("=") + "B=", key(1)[:-2] + "B=", "rsa:" + "A" * 43 + "="]
)
async def test_what_is_no_key_is_rejected(client: Client, bad: str) -> None:
    with pytest.raises(Rejected):
        await client.register(public_key=bad)


async def test_another_live_replica_of_a_device_gets_a_conflict(client: Client) -> None:
    clone = client.other(client.device, "rep_b")
    for call in (clone.register(), clone.sync(clone.event(1))):
        with pytest.raises(DeviceConflict):
            await call
    assert (await client.sync(client.event(1))).head == 1, "nothing of the other one was stored"


async def test_a_device_that_fell_silent_goes_to_the_next_replica(client: Client) -> None:
    await client.sync(client.event(1))
    client.world.age_last_seen(client.person, client.device)
    heir = await client.other(client.device, "rep_b").register()
    assert (await heir.sync(heir.event(1))).head == 2
    with pytest.raises(DeviceConflict):
        await client.sync()


async def test_a_device_reports_its_own_quarantine_only(client: Client) -> None:
    cloud, second = client.world.cloud, await client.other("device-b", "rep_b").register()
    await cloud.report_refusals(client.session, client.device, {"22023": 2, "413": 1})
    assert client.world.reported_refusals(client.person, client.device) == {"22023": 2, "413": 1}
    assert client.world.reported_refusals(client.person, second.device) == {}
    await cloud.report_refusals(client.session, client.device, {})
    assert client.world.reported_refusals(client.person, client.device) == {}
    with pytest.raises(Forbidden):
        await cloud.report_refusals(client.session, "device-unknown", {"22023": 1})


# --- push and pull ------------------------------------------------------------------------------------------


async def test_events_are_acknowledged_in_order_and_come_back_without_a_gap(client: Client) -> None:
    events = tuple(client.event(number) for number in range(1, 8))
    answer = await client.sync(*events)
    assert answer.acked == tuple((item.event_id, number) for number, item in enumerate(events, 1))
    assert (answer.head, answer.floor, answer.reset) == (7, 0, False)
    assert seqs(answer.events) == [1, 2, 3, 4, 5, 6, 7]
    assert all(item.server_ts for item in answer.events)


async def test_an_event_comes_back_value_for_value_with_unknown_fields(client: Client) -> None:
    sent = client.event(
        1,
        type="from_the_future",
        schema_version=7,
        origin="somebody-new",
        payload={"文": ["字", None, True, -1, 2.5, {"空": {}}], "long": "x" * 5000, "emoji": "\U0001f600"},
        extra={"future_field": {"a": [1, 2, {"b": None}]}, "n": 0, "empty": "", "list": []},
    )
    (back,) = (await client.sync(sent)).events
    assert to_wire(back) == to_wire(sent)
    assert dict(back.extra) == dict(sent.extra)
    assert (back.reach, back.server_seq) == (sent.reach, 1)


async def test_fields_that_may_be_missing_do_not_make_an_event_unreadable(client: Client) -> None:
    bare: Any = {"project_id": None, "project_path": None, "session_id": None, "local_date": None, "utc_offset": None}
    answer = await client.sync(client.event(1, **bare), client.event(2))
    assert seqs(answer.events) == [1, 2]


async def test_sending_again_changes_nothing_and_burns_no_number(client: Client) -> None:
    events = tuple(client.event(number) for number in range(1, 4))
    first = await client.sync(*events)
    changed = (replace(events[0], payload={}), replace(events[1], replica_id="rep_former"), events[2])
    second = await client.sync(*changed, client.event(4))
    assert second.acked[:3] == first.acked
    assert second.acked[3][1] == 4
    assert [item.payload for item in second.events[:3]] == [item.payload for item in events]


@pytest.mark.parametrize("other", [{"payload": {"text": "another"}}, {"hlc": "0193a5b2c3d4-00ff"}, {"type": "message"}])
async def test_an_id_that_another_event_has_is_refused_and_nothing_of_its_batch_is_stored(
    client: Client, other: dict[str, Any]
) -> None:
    known = client.event(1)
    await client.sync(known)
    with pytest.raises(Rejected) as refused:
        await client.sync(client.event(2), replace(known, **other))
    assert refused.value.code == "22023"
    with pytest.raises(Rejected):
        await client.sync(client.event(3), replace(client.event(3), **other))
    assert (await client.sync()).head == 1


async def test_one_event_twice_in_a_batch_is_stored_and_acknowledged_once(client: Client) -> None:
    one, two = client.event(1), client.event(2)
    answer = await client.sync(one, two, one)
    assert answer.acked == ((one.event_id, 1), (two.event_id, 2))
    assert answer.head == 2


async def test_a_pull_goes_on_from_the_cursor_in_pages(client: Client) -> None:
    await client.sync(*(client.event(number) for number in range(1, 11)))
    epoch = (await client.sync()).epoch
    found: list[int | None] = []
    after, at = 0, None
    while True:
        page = await client.sync(after=after, after_event=at, epoch=epoch, limit=4)
        assert page.head == 10
        assert len(page.events) <= 4
        if not page.events:
            break
        found += seqs(page.events)
        after, at = page.events[-1].server_seq or 0, page.events[-1].event_id
    assert found == list(range(1, 11))


async def test_a_pull_of_nothing_pulls_nothing(client: Client) -> None:
    await client.sync(client.event(1))
    assert (await client.sync(limit=0)).events == ()


async def test_the_devices_of_a_person_share_one_numbering(client: Client) -> None:
    second = await client.other("device-b", "rep_b").register()
    await client.sync(client.event(1))
    answer = await second.sync(second.event(1), second.event(2))
    assert [(item.device_id, item.server_seq) for item in answer.events] == [
        ("device-a", 1),
        ("device-b", 2),
        ("device-b", 3),
    ]


async def test_nothing_of_one_person_reaches_another(client: Client) -> None:
    mine = client.event(1, payload={"text": "谁也不该看到"})
    await client.sync(mine, snapshot=snapshot("# 我的\n", 1))
    stranger = await (await signed_in(client.world)).register()
    empty = await stranger.sync()
    assert (empty.head, empty.events, empty.acked) == (0, (), ())
    same_id = await stranger.sync(stranger.event(1, event_id=mine.event_id, payload={"text": "别的"}))
    assert same_id.acked == ((mine.event_id, 1),)
    assert [item.payload for item in same_id.events] == [{"text": "别的"}]
    assert [item.payload for item in (await client.sync()).events] == [{"text": "谁也不该看到"}]
    assert client.world.document(stranger.person, "device-a") is None


async def test_a_cursor_of_one_person_means_nothing_in_anothers_log(client: Client) -> None:
    answer = await client.sync(client.event(1))
    stranger = await (await signed_in(client.world)).register()
    other = await stranger.sync(after=1, after_event=answer.events[0].event_id, epoch=answer.epoch)
    assert other.reset
    assert other.events == ()


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"device_id": "another-device"},
        {"payload": {"text": "x" * 70_000}},
        {"payload": {"text": "a\u0000b"}},
        {"hlc": "0193A5B2C3D4-0000"},
        {"event_id": ""},
        {"event_id": "x" * 129},
        {"type": ""},
        {"ts": "x" * 65},
        {"replica_seq": 0},
        {"local_date": "yesterday"},
        {"utc_offset": 100_000},
        {"extra": {"x": "y" * 70_000}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
async def test_a_bad_event_is_rejected_and_nothing_of_its_batch_is_stored(client: Client, wrong: Any) -> None:
    bad = replace(client.event(2), **wrong)
    with pytest.raises(Rejected) as caught:
        await client.sync(client.event(1), bad, client.event(3))
    assert caught.value.code
    assert not caught.value.retryable
    assert (await client.sync()).head == 0


async def test_two_events_under_one_number_are_rejected(client: Client) -> None:
    with pytest.raises(Rejected):
        await client.sync(client.event(1), client.event(1))
    assert (await client.sync()).head == 0


async def test_a_known_number_under_another_id_is_a_fork_and_nothing_is_stored(client: Client) -> None:
    await client.sync(client.event(1), client.event(2))
    with pytest.raises(DeviceForked):
        await client.sync(client.event(3), client.event(2), snapshot=snapshot("# 分叉\n", 3))
    assert (await client.sync()).head == 2
    assert client.world.document(client.person, client.device) is None


# --- a server that was restored -----------------------------------------------------------------------------


async def _five(client: Client) -> SyncAnswer:
    return await client.sync(*(client.event(number) for number in range(1, 6)))


def _cursor(answer: SyncAnswer, at: int) -> dict[str, Any]:
    return {"after": at, "after_event": answer.events[at - 1].event_id, "epoch": answer.epoch}


async def test_a_cursor_that_fits_is_no_reset(client: Client) -> None:
    answer = await _five(client)
    for at in (1, 4, 5):
        following = await client.sync(**_cursor(answer, at))
        assert not following.reset
        assert seqs(following.events) == list(range(at + 1, 6))
    assert not (await client.sync(after=0, epoch=answer.epoch)).reset
    newest = answer.events[-1].server_ts
    assert newest
    assert not (await client.sync(**_cursor(answer, 5), after_ts=newest)).reset


@pytest.mark.parametrize(
    "wrong",
    [
        {"epoch": "another-epoch"},
        {"epoch": None},
        {"after": 6},
        {"after_event": "evt_somebody_elses"},
        {"after_event": None},
        {"after": 3},
        {"after_ts": "2026-01-01T00:00:00.000Z"},
    ],
    ids=lambda wrong: "-".join(f"{name}={value}" for name, value in wrong.items()),
)
async def test_a_cursor_that_belongs_to_another_log_is_reset(client: Client, wrong: dict[str, Any]) -> None:
    answer = await _five(client)
    answer_now = await client.sync(**{**_cursor(answer, 5), **wrong})
    assert answer_now.reset
    assert answer_now.events == ()
    assert (answer_now.epoch, answer_now.head, answer_now.floor) == (answer.epoch, 5, 0)


async def test_a_head_behind_the_cursor_is_a_reset(client: Client) -> None:
    answer = await _five(client)
    client.world.restore(client.person, keep=2)
    next_answer = await client.sync(**_cursor(answer, 5))
    assert (next_answer.reset, next_answer.head) == (True, 2)


async def test_a_server_refilled_past_the_cursor_is_noticed_by_the_event_there(client: Client) -> None:
    answer = await _five(client)
    client.world.restore(client.person, keep=2)
    other = await client.other("device-b", "rep_b").register()
    await other.sync(*(other.event(number) for number in range(1, 9)))
    next_answer = await client.sync(**_cursor(answer, 5))
    assert (next_answer.reset, next_answer.head) == (True, 10)


async def test_a_push_does_not_hide_that_the_server_was_restored(client: Client) -> None:
    answer = await _five(client)
    client.world.restore(client.person, keep=2)
    next_answer = await client.sync(*(client.event(number) for number in range(6, 12)), **_cursor(answer, 5))
    assert next_answer.reset, "the push refilled the numbers that were forgotten"
    assert [number for _, number in next_answer.acked] == [3, 4, 5, 6, 7, 8]


async def test_another_epoch_is_a_reset_even_if_everything_else_fits(client: Client) -> None:
    answer = await _five(client)
    client.world.restore(client.person, keep=5, epoch="another-life")
    next_answer = await client.sync(**_cursor(answer, 5))
    assert (next_answer.reset, next_answer.epoch) == (True, "another-life")


# --- folding and forgetting -----------------------------------------------------------------------------------


async def test_what_was_folded_is_pulled_like_anything_else(client: Client) -> None:
    before = await _five(client)
    client.world.fold_events(client.person)
    second = await client.other("device-b", "rep_b").register()
    answer = await second.sync(second.event(1))
    assert (answer.events[:5], answer.floor, seqs(answer.events)) == (before.events, 0, [1, 2, 3, 4, 5, 6])
    later = await client.sync(after=2, after_event=before.events[1].event_id, epoch=before.epoch)
    assert (later.reset, seqs(later.events)) == (False, [3, 4, 5, 6])


async def test_a_cursor_that_does_not_fit_is_reset_below_the_floor_too(client: Client) -> None:
    before = await _five(client)
    client.world.fold_events(client.person)
    for wrong in ({"after": 3}, {"after_event": "evt_somebody_elses"}, {"after_event": None}):
        answer_now = await client.sync(**{**_cursor(before, 5), **wrong})
        assert (answer_now.reset, answer_now.floor) == (True, 0)
    assert seqs((await client.sync()).events) == [1, 2, 3, 4, 5]


async def test_what_was_folded_is_known_and_its_numbers_are_taken(client: Client) -> None:
    before = await _five(client)
    client.world.fold_events(client.person)
    answer = await client.sync(before.events[3], client.event(6))
    assert [number for _, number in answer.acked] == [4, 6]
    with pytest.raises(DeviceForked):
        await client.sync(client.event(2, event_id="evt_another_under_this_number"))


@pytest.mark.parametrize("folded", [False, True])
async def test_what_an_event_says_is_forgotten_is_blank_from_then_on(client: Client, *, folded: bool) -> None:
    before = await _five(client)
    if folded:
        client.world.fold_events(client.person)
    named = {"event_ids": [before.events[1].event_id, "evt_unknown", before.events[3].event_id]}
    wish = client.event(6, type="payload_forgotten", payload=named)
    for answer in (await client.sync(wish), await client.sync(wish)):
        assert seqs(answer.events) == [1, 2, 3, 4, 5, 6]
        assert [dict(item.payload) for item in answer.events if item.server_seq in {2, 4}] == [{}, {}]
        assert [item.payload for item in answer.events[::2]] == [item.payload for item in before.events[::2]]
        assert dict(answer.events[5].payload) == named
    again = await client.sync(before.events[1])
    assert dict(again.events[1].payload) == {}, "the original, sent again, does not come back"


# --- the document -------------------------------------------------------------------------------------------


async def test_a_document_is_stored_only_when_it_is_newer(client: Client) -> None:
    def held() -> str | None:
        return client.world.document(client.person, client.device)

    await client.sync(snapshot=snapshot("# 一\n", 1))
    assert held() == "# 一\n"
    await client.sync(snapshot=snapshot("# 三\n", 3))
    assert held() == "# 三\n"
    for through in (3, 2):
        await client.sync(snapshot=snapshot("# 旧\n", through))
        assert held() == "# 三\n"


async def test_under_the_same_number_only_the_text_that_is_named_is_written_over(client: Client) -> None:
    async def told(content: str, through: int, over: str | None = None) -> tuple[str | None, str | None]:
        answer = await client.sync(snapshot=snapshot(content, through, over))
        return answer.snapshot, client.world.document(client.person, client.device)

    assert await told("# 一二\n", 2) == ("written", "# 一二\n")
    assert await told("# 一\n", 2) == (STALE_DOCUMENT, "# 一二\n")
    assert await told("# 一\n", 2, over="# 别的\n") == (STALE_DOCUMENT, "# 一二\n")
    stored = await client.world.cloud.read_document(client.session, client.device)
    assert stored == StoredDocument("# 一二\n", hashed("# 一二\n"), client.replica)
    assert await told("# 一\n", 2, over="# 一二\n") == ("written", "# 一\n")
    assert (await client.sync()).snapshot is None, "it is not taken for another program's"
    assert await told("# 一\n", 2, over="# 一二\n") == ("kept", "# 一\n"), "the same again, late"
    assert await told("# 一二\n", 2) == (STALE_DOCUMENT, "# 一\n"), "the first again, late"
    assert await told("# 零\n", 1, over="# 一\n") == ("kept", "# 一\n"), "of an older number, whatever it names"
    assert await told("# 一三\n", 3, over="# 别的\n") == ("written", "# 一三\n")


async def test_an_heir_of_the_device_replaces_the_document(client: Client) -> None:
    await client.sync(snapshot=snapshot("# 旧\n", 9))
    client.world.age_last_seen(client.person, client.device)
    heir = await client.other(client.device, "rep_b").register()
    await heir.sync(snapshot=snapshot("# 新\n", 1))
    assert client.world.document(client.person, client.device) == "# 新\n"


async def test_each_device_has_a_document_of_its_own(client: Client) -> None:
    second = await client.other("device-b", "rep_b").register()
    await client.sync(snapshot=snapshot("# 甲\n", 1))
    await second.sync(snapshot=snapshot("# 乙\n", 1))
    assert client.world.document(client.person, "device-a") == "# 甲\n"
    assert client.world.document(client.person, "device-b") == "# 乙\n"


@pytest.mark.parametrize(
    "bad",
    [
        replace(snapshot("# 一\n", 1), content_sha256="0" * 64),
        snapshot("字" * 400_000, 1),
        replace(snapshot("# 一\n", 1), through_replica_seq=-1),
    ],
    ids=["hash", "size", "number"],
)
async def test_a_bad_document_is_rejected_together_with_its_batch(client: Client, bad: SnapshotRow) -> None:
    with pytest.raises(Rejected):
        await client.sync(client.event(1), snapshot=bad)
    assert (await client.sync()).head == 0
    assert client.world.document(client.person, client.device) is None


async def test_a_foreign_document_is_reported_at_every_call_and_read(client: Client) -> None:
    await client.sync(snapshot=snapshot("# 我们的\n", 1))
    assert (await client.sync()).snapshot is None
    client.world.write_document(client.person, client.device, "# 原版应用的\n")
    assert (await client.sync()).snapshot == FOREIGN_DOCUMENT
    assert (await client.sync(client.event(1), snapshot=snapshot("# 我们的，新\n", 2))).snapshot == FOREIGN_DOCUMENT
    stored = await client.world.cloud.read_document(client.session, client.device)
    assert stored == StoredDocument("# 原版应用的\n", hashed("# 原版应用的\n"), None)


async def test_only_the_foreign_document_that_was_read_is_written_over(client: Client) -> None:
    client.world.write_document(client.person, client.device, "# 一\n")
    read = await client.world.cloud.read_document(client.session, client.device)
    assert read is not None
    client.world.write_document(client.person, client.device, "# 二\n")
    ours = replace(snapshot("# 一和我们的\n", 1), base_sha256=read.content_sha256)
    assert (await client.sync(snapshot=ours)).snapshot == FOREIGN_DOCUMENT
    assert client.world.document(client.person, client.device) == "# 二\n"
    again = await client.world.cloud.read_document(client.session, client.device)
    assert again is not None
    both = replace(snapshot("# 一二和我们的\n", 1), base_sha256=again.content_sha256)
    assert (await client.sync(snapshot=both)).snapshot == "written"
    assert (await client.sync()).snapshot is None
    assert client.world.document(client.person, client.device) == "# 一二和我们的\n"


async def test_a_user_cannot_read_the_document_of_another(client: Client) -> None:
    await client.sync(snapshot=snapshot("# 我的\n", 1))
    assert await client.world.cloud.read_document(client.session, "device-b") is None
    stranger = await (await signed_in(client.world)).register()
    assert await client.world.cloud.read_document(stranger.session, client.device) is None
    with pytest.raises(LoginRequired):
        await client.world.cloud.read_document(replace(client.session, access_token="garbage"), client.device)
