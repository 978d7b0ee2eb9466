"""The replication loop for hours of virtual time: it survives every error and never causes a storm of requests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sync.cloud.auth.account import REFRESH_MARGIN_SECONDS
from sync.cloud.auth_port import AuthSession
from sync.cloud.replication.document_upload import QUIET_SECONDS
from sync.cloud.replication.replicator import (
    CONFLICT_RETRY_INTERVAL,
    LONG_PROBE_SECONDS,
    MAX_RETRY_AFTER,
    MAX_SERVER_POLL,
    POLL_FACTOR_AT_REST,
    RECOVERY_SPREAD,
    REFUSED_RETRY_INTERVAL,
    RETRY_BACKOFF,
)
from sync.cloud.status import CloudState
from sync.errors import (
    CloudError,
    CloudUnavailable,
    CloudUnreachable,
    DeviceConflict,
    DeviceForked,
    Forbidden,
    RateLimited,
    Rejected,
    SchemaMismatch,
    StorageError,
)
from sync.settings.sections import SyncSettings
from tests.fake_cloud.auth import TOKEN_SECONDS
from tests.fake_cloud.server import LIVE_SECONDS, FakeServer
from tests.integration.cloud.replication.test_sync_round import document
from tests.support import Device, LoopClock, background_task, intervals, new_server, open_device, run_in_virtual_time

HOUR = 3600.0
POLL = 30.0


def run_with_script(
    folder: Path,
    script: Callable[[Device, FakeServer], Awaitable[None]],
    *,
    log_in: bool = True,
    is_alone: bool = False,
    seed: int = 1,
) -> None:
    """Run a device beside a script, in virtual time. `is_alone`: the account has no other device."""

    async def main() -> None:
        async with open_running_device(folder, log_in=log_in, is_alone=is_alone, seed=seed) as (device, server):
            await script(device, server)

    run_in_virtual_time(main())


@asynccontextmanager
async def open_running_device(
    folder: Path, *, log_in: bool, is_alone: bool = False, seed: int = 1
) -> AsyncIterator[tuple[Device, FakeServer]]:
    clock = LoopClock(seed=seed)
    server = new_server(clock)
    options = SyncSettings(poll_seconds=POLL, timeout_seconds=10.0)
    async with open_device(folder / "a", server, clock=clock, single_threaded=True, options=options) as device:
        if log_in:
            await device.log_in()
        if not is_alone:
            server.add_device("user-1", "device-b")
        with background_task(device.replicator.run()) as task:
            yield device, server
            assert not task.done(), "the loop goes on"


def state(device: Device) -> CloudState:
    return device.replicator.state


def test_an_idle_loop_polls_with_a_little_jitter(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(0.9 * HOUR)
        pauses = intervals(device.cloud.times)
        assert 95 <= device.cloud.count("sync") <= 125
        assert device.cloud.count("register_device") == 1
        steady = pauses[5:]
        assert all(0.9 * POLL <= pause <= 1.1 * POLL for pause in steady)
        assert len(set(steady)) > 10, "devices must not poll in step"

    run_with_script(tmp_path, script)


def test_the_only_device_of_an_account_polls_a_quarter_as_often(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(HOUR)
        pauses = intervals(device.cloud.times)
        assert all(0.9 * POLL <= pause / POLL_FACTOR_AT_REST <= 1.1 * POLL for pause in pauses[5:])

    run_with_script(tmp_path, script, is_alone=True)


@pytest.mark.parametrize(("asked", "kept"), [(120.0, 120.0), (1.0, POLL), (100_000.0, MAX_SERVER_POLL)])
def test_the_server_says_how_often_it_is_polled_but_not_more_often_than_is_set(
    tmp_path: Path, asked: float, kept: float
) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        server.poll_seconds = asked
        await asyncio.sleep(kept)
        before = device.cloud.count("sync")
        await asyncio.sleep(20 * kept)
        assert 18 <= device.cloud.count("sync") - before <= 23

    run_with_script(tmp_path, script)


def test_exchanges_upload_no_document_and_a_quiet_device_uploads_one(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        def sent() -> list[str]:
            return [asked.snapshot.content for asked in device.cloud.requests if asked.snapshot is not None]

        for number in range(40):
            device.stored_documents.append(document(f"# {number}\n", number + 1))
            await device.record_notes(f"{number}")
            await asyncio.sleep(QUIET_SECONDS / 2)
        assert len(server.user_logs["user-1"].events) == 40
        assert sent() == []
        await asyncio.sleep(QUIET_SECONDS + 2 * POLL)
        assert sent() == ["# 39\n"]
        device.stored_documents.append(document("# 40\n", 41))
        await device.replicator.sync_now()
        assert sent() == ["# 39\n", "# 40\n"], "at once for a caller that asks"

    run_with_script(tmp_path, script)


def test_devices_come_back_from_a_long_outage_at_different_times(tmp_path: Path) -> None:
    delays: list[float] = []

    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        server.down = True
        device.cloud.permanent_failure = CloudUnreachable("no network")
        await asyncio.sleep(3 * HOUR)
        server.down, device.cloud.permanent_failure = False, None
        up = asyncio.get_running_loop().time()
        seen = device.replicator.state_changed.count
        await device.replicator.state_changed.wait_for_change(seen)
        delays.append(asyncio.get_running_loop().time() - up)

    for seed in range(1, 9):
        run_with_script(tmp_path / f"{seed}", script, seed=seed)
    assert max(delays) - min(delays) > RECOVERY_SPREAD / 2
    assert max(delays) <= LONG_PROBE_SECONDS + RECOVERY_SPREAD


def test_what_is_recorded_goes_out_at_once(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(10 * POLL + 1)
        before = asyncio.get_running_loop().time()
        seen = device.replicator.state_changed.count
        await device.record_notes("一")
        await device.replicator.state_changed.wait_for_change(seen)
        assert asyncio.get_running_loop().time() == before
        assert len(server.user_logs["user-1"].events) == 1

    run_with_script(tmp_path, script)


def test_a_round_that_pulled_something_is_followed_by_another_at_once(tmp_path: Path) -> None:
    """Pulled events change the document, and an erasure elsewhere must reach its copy on the server."""

    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(10 * POLL + 1)
        async with open_device(
            tmp_path / "c", server, device_id="device-c", clock=device.clock, single_threaded=True
        ) as other:
            await other.log_in()
            await other.record_notes("一")
            await other.replicator.sync_now()
        device.cloud.times.clear()
        await asyncio.sleep(1.1 * POLL)
        assert intervals(device.cloud.times)[0] == 0

    run_with_script(tmp_path, script)


def test_an_outage_of_hours_costs_few_calls_and_is_over_when_it_is_over(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        await device.record_notes("一")
        device.cloud.permanent_failure = CloudUnavailable("no network")
        device.cloud.times.clear()
        await device.record_notes("二")
        await asyncio.sleep(6 * HOUR)
        calls = len(device.cloud.times)
        assert 6 * HOUR / RETRY_BACKOFF.limit / 2 <= calls <= 400
        assert max(intervals(device.cloud.times)) <= RETRY_BACKOFF.limit + 1
        first_hour = [at for at in device.cloud.times if at < device.cloud.times[0] + HOUR]
        assert len(first_hour) <= 120
        assert state(device) is CloudState.OFFLINE
        device.cloud.permanent_failure = None
        await asyncio.sleep(RETRY_BACKOFF.limit + 1)
        assert (await device.log.outbox()).pending == 0
        assert state(device) is CloudState.SYNCED

    run_with_script(tmp_path, script)


def test_the_loop_survives_days_without_a_network(tmp_path: Path) -> None:
    """More than a thousand failures in a row: a backoff that doubles without a bound overflows after a thousand."""

    async def script(device: Device, server: FakeServer) -> None:
        device.cloud.permanent_failure = CloudUnavailable("no network")
        await asyncio.sleep(4 * 24 * HOUR)
        assert len(device.cloud.calls) > 1_100
        device.cloud.permanent_failure = None
        await asyncio.sleep(RETRY_BACKOFF.limit + 1)
        assert state(device) is CloudState.SYNCED

    run_with_script(tmp_path, script)


@pytest.mark.parametrize("seconds", [25.0, 300.0])
def test_after_a_cut_it_is_level_within_five_seconds_at_the_cost_of_one_refresh(tmp_path: Path, seconds: float) -> None:
    """The token expires during the outage; events of that time are on the server afterwards."""

    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(TOKEN_SECONDS - REFRESH_MARGIN_SECONDS - seconds / 2)
        sessions, calls = len(device.tokens.saved), len(device.cloud.calls)
        server.down = True
        for number in range(5):
            await device.record_notes(f"{number}")
            await asyncio.sleep(seconds / 5)
        assert state(device) is CloudState.OFFLINE
        assert len(device.cloud.calls) - calls < 40
        server.down = False
        await asyncio.sleep(5.0)
        assert state(device) is CloudState.SYNCED
        assert (await device.log.outbox()).pending == 0
        assert len(server.user_logs["user-1"].events) == 5
        assert len(device.tokens.saved) - sessions == 1

    run_with_script(tmp_path, script)


def test_a_server_that_answers_badly_is_not_probed(tmp_path: Path) -> None:
    """It is reachable, so only the backoff counts; otherwise the return of all devices would be its next outage."""

    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        device.cloud.permanent_failure = CloudUnavailable("the server answered 503")
        before = len(device.cloud.calls)
        await asyncio.sleep(HOUR)
        assert len(device.cloud.calls) - before <= 120

    run_with_script(tmp_path, script)


def test_recording_during_an_outage_does_not_make_it_a_storm(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        device.cloud.permanent_failure = CloudUnavailable("no network")
        before = len(device.cloud.calls)
        for number in range(300):
            await device.record_notes(f"{number}")
            await asyncio.sleep(1.0)
        assert len(device.cloud.calls) - before <= 100
        assert (await device.log.outbox()).pending == 300

    run_with_script(tmp_path, script)


def test_a_login_ends_the_wait_of_an_outage(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        device.cloud.permanent_failure = CloudUnavailable("no network")
        await asyncio.sleep(HOUR)
        device.cloud.permanent_failure = None
        at = asyncio.get_running_loop().time()
        seen = device.replicator.state_changed.count
        device.replicator.wake()
        await device.replicator.state_changed.wait_for_change(seen)
        assert asyncio.get_running_loop().time() == at
        assert state(device) is CloudState.SYNCED

    run_with_script(tmp_path, script)


@pytest.mark.parametrize(("asked", "waited"), [(120.0, 120.0), (1000.0, 1000.0), (10**9, MAX_RETRY_AFTER)])
def test_the_time_that_the_server_asks_for_is_kept_within_reason(tmp_path: Path, asked: float, waited: float) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(2 * POLL + 5)
        device.cloud.fail_next("sync", RateLimited("slow down", retry_after=asked))
        before = len(device.cloud.times)
        await asyncio.sleep(2 * MAX_RETRY_AFTER)
        refused, following = device.cloud.times[before : before + 2]
        assert waited - 0.01 <= following - refused <= max(waited, RETRY_BACKOFF.limit) + 1

    run_with_script(tmp_path, script)


def test_a_device_that_another_replica_speaks_for_takes_over_soon_after_that_one_is_silent(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        device.cloud.permanent_failure = DeviceConflict("another one")
        await asyncio.sleep(LIVE_SECONDS)
        assert state(device) is CloudState.REFUSED
        assert len(device.cloud.calls) <= 2 * LIVE_SECONDS / CONFLICT_RETRY_INTERVAL + 10
        device.cloud.permanent_failure = None
        await asyncio.sleep(1.2 * CONFLICT_RETRY_INTERVAL)
        assert state(device) is CloudState.SYNCED

    run_with_script(tmp_path, script)


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("revoked"),
        SchemaMismatch("no function"),
        DeviceForked("a clone"),
        Rejected("no", code="PGRST100"),
    ],
    ids=lambda error: error.kind,
)
def test_a_no_is_looked_at_again_now_and_then(tmp_path: Path, error: CloudError) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        device.cloud.permanent_failure = error
        await asyncio.sleep(4 * HOUR)
        assert (
            4 * HOUR / REFUSED_RETRY_INTERVAL / 2
            <= len(device.cloud.calls)
            <= 2 * 4 * HOUR / REFUSED_RETRY_INTERVAL + 10
        )
        assert state(device) is CloudState.REFUSED
        device.cloud.permanent_failure = None
        await asyncio.sleep(1.2 * REFUSED_RETRY_INTERVAL)
        assert state(device) is CloudState.SYNCED

    run_with_script(tmp_path, script)


def test_a_no_is_not_asked_again_for_every_event_that_is_recorded(tmp_path: Path) -> None:
    """A revoked device with a busy user causes no storm."""

    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        device.cloud.permanent_failure = Forbidden("revoked")
        before = len(device.cloud.calls)
        for number in range(300):
            await device.record_notes(f"{number}")
            await asyncio.sleep(1.0)
        assert len(device.cloud.calls) - before <= 20

    run_with_script(tmp_path, script)


def test_without_a_login_nothing_is_requested(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await device.record_notes("一")
        await asyncio.sleep(HOUR)
        assert device.cloud.calls == []
        assert state(device) is CloudState.SIGNED_OUT
        await device.log_in()
        device.replicator.wake()
        await asyncio.sleep(1)
        assert (await device.log.outbox()).pending == 0

    run_with_script(tmp_path, script, log_in=False)


def test_three_hours_of_tokens_are_one_refresh_an_hour(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(3 * HOUR)
        assert 2 <= device.cloud.count("refresh") <= 4
        assert state(device) is CloudState.SYNCED

    run_with_script(tmp_path, script)


def test_a_revoked_session_is_asked_about_once(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        server.accounts.revoke_sessions()
        before = len(device.cloud.calls)
        await asyncio.sleep(12 * HOUR)
        assert len(device.cloud.calls) - before <= 3
        assert state(device) is CloudState.SIGNED_OUT

    run_with_script(tmp_path, script)


def test_a_server_that_accepts_no_token_does_not_make_refreshes_a_storm(tmp_path: Path) -> None:
    """Refreshing works, but every fresh token is refused: the project's secret was changed in one place only."""

    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        renew = server.accounts.refresh_session

        def stillborn(session: AuthSession) -> AuthSession:
            fresh = renew(session)
            server.accounts.expire_tokens()
            return fresh

        server.accounts.refresh_session = stillborn  # type: ignore[method-assign]
        server.accounts.expire_tokens()
        before = device.cloud.count("refresh")
        await asyncio.sleep(4 * HOUR)
        assert device.cloud.count("refresh") - before <= 4 * HOUR / REFUSED_RETRY_INTERVAL + 10

    run_with_script(tmp_path, script)


def test_a_server_that_never_answers_costs_one_deadline_at_a_time(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        device.cloud.pause_calls()
        before = len(device.cloud.calls)
        await asyncio.sleep(HOUR)
        assert state(device) is CloudState.OFFLINE
        assert 3 <= len(device.cloud.calls) - before <= 120
        device.cloud.gate.set()
        await asyncio.sleep(RETRY_BACKOFF.limit + 1)
        assert state(device) is CloudState.SYNCED

    run_with_script(tmp_path, script)


def test_a_keychain_that_stays_locked_does_not_end_the_loop(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        load = device.tokens.load
        asked = 0

        def locked() -> None:
            nonlocal asked
            asked += 1
            raise StorageError("the keychain is locked")

        device.tokens.load = locked  # type: ignore[method-assign]
        await asyncio.sleep(HOUR)
        assert asked <= HOUR / POLL * 1.2 + 5
        status = await device.replicator.status()
        assert status.last_error is not None
        assert status.last_error.kind == "storage_error"
        device.tokens.load = load  # type: ignore[method-assign]
        await asyncio.sleep(2 * POLL)
        assert state(device) is CloudState.SYNCED

    run_with_script(tmp_path, script)


def test_a_server_that_says_yes_and_no_in_turn_is_not_asked_without_a_pause(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        device.cloud.fail_next("sync", *([Forbidden("no")] * 1000))
        inner, turns = device.cloud.failures["sync"], iter(range(10**6))
        real = inner.popleft

        class EveryOther:
            def __bool__(self) -> bool:
                return next(turns) % 2 == 0

            def popleft(self) -> Exception:
                return real()

        device.cloud.failures["sync"] = EveryOther()  # type: ignore[assignment]
        before = len(device.cloud.calls)
        await asyncio.sleep(HOUR)
        assert len(device.cloud.calls) - before <= 2 * HOUR / POLL

    run_with_script(tmp_path, script)


def test_many_who_ask_at_once_make_few_calls(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        before = device.cloud.count("sync")
        await asyncio.gather(*(device.replicator.sync_now() for _ in range(100)))
        assert device.cloud.count("sync") - before <= 2

    run_with_script(tmp_path, script)


def test_a_sync_that_is_asked_for_during_a_round_answers_about_a_later_one(tmp_path: Path) -> None:
    async def script(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(POLL)
        device.cloud.pause_calls()
        in_outage = asyncio.create_task(device.replicator.sync_now())
        await device.cloud.wait_for_call()
        await device.record_notes("一")
        calls = [asyncio.create_task(device.replicator.sync_now()) for _ in range(10)]
        await asyncio.sleep(0)
        device.cloud.fail_next("sync", CloudUnavailable("no answer"))
        device.cloud.gate.set()
        with pytest.raises(CloudUnavailable):
            await in_outage
        rounds = await asyncio.gather(*calls)
        assert len({id(done) for done in rounds}) == 1, "they share the next one"
        assert rounds[0].pushed == 1

    run_with_script(tmp_path, script)
