"""The owner of a profile, and the one refresher: each token is used once, and belongs to one user."""

import asyncio
import json
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from filelock import FileLock
from msgspec.structs import replace

from sync.cloud.auth.account import REFRESH_GRACE_SECONDS, Account
from sync.cloud.auth.session_storage import FileSessionStorage
from sync.cloud.auth.token_retry import MAX_TOKENS, with_fresh_token
from sync.cloud.auth_port import AccountJson, AuthSession
from sync.cloud.contact import parse_contact
from sync.errors import (
    BadCredentials,
    CloudNotConfigured,
    CloudUnavailable,
    DifferentUser,
    Forbidden,
    LoginRequired,
    RateLimited,
    StorageError,
)
from tests.fake_cloud.auth import TOKEN_SECONDS
from tests.fake_cloud.server import FakeServer
from tests.support import (
    EMAIL,
    PASSWORD,
    REPOSITORY,
    Device,
    FakeSessionStorage,
    FixedClock,
    LoopClock,
    new_server,
    open_device,
    run_in_virtual_time,
)

OTHER = "other@example.com"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def server(clock: FixedClock) -> FakeServer:
    server = new_server(clock)
    server.add_user(OTHER, PASSWORD)
    return server


@pytest.fixture
async def device(tmp_path: Path, server: FakeServer, clock: FixedClock) -> AsyncIterator[Device]:
    async with open_device(tmp_path / "a", server, clock=clock) as opened:
        yield opened


async def log_in(account: Account, email: str, password: str) -> AccountJson:
    return await account.log_in(await account.auth.sign_in_with_password(parse_contact(email=email), password))


def stored(device: Device) -> AuthSession:
    assert device.tokens.session is not None
    return device.tokens.session


async def test_before_any_login_the_memory_is_a_guests(device: Device) -> None:
    assert (await device.account.state()).state == "guest"
    with pytest.raises(LoginRequired):
        await device.account.session()
    assert device.cloud.calls == []


async def test_the_first_login_makes_the_profile_that_users(device: Device) -> None:
    state = await log_in(device.account, EMAIL, PASSWORD)
    assert (state.state, state.user_id, state.label) == ("logged_in", "user-1", EMAIL)
    assert (await device.account.session()).user_id == "user-1"


async def test_a_wrong_password_changes_nothing(device: Device) -> None:
    with pytest.raises(BadCredentials):
        await log_in(device.account, EMAIL, "wrong")
    assert (await device.account.state()).state == "guest"
    assert device.tokens.saved == []


async def test_a_different_user_is_refused_and_nothing_has_changed(device: Device) -> None:
    await device.log_in()
    before = (await device.account.state(), device.tokens.session, await device.rows("select * from accounts"))
    session = await device.account.auth.sign_in_with_password(parse_contact(email=OTHER), PASSWORD)
    with pytest.raises(DifferentUser):
        await device.account.log_in(session)
    assert (
        await device.account.state(),
        device.tokens.session,
        await device.rows("select * from accounts"),
    ) == before
    assert (await device.account.session()).user_id == "user-1"
    assert await device.account.auth.identify_user(session.access_token) == (session.user_id, OTHER), (
        "still the caller's"
    )
    await device.account.discard_session(session)
    with pytest.raises(LoginRequired):
        await device.account.auth.identify_user(session.access_token)


async def test_after_logging_out_the_memory_is_still_his(device: Device) -> None:
    await device.log_in()
    state = await device.account.log_out()
    assert (state.state, state.user_id) == ("logged_out", "user-1")
    assert device.tokens.session is None
    with pytest.raises(LoginRequired):
        await device.account.session()
    with pytest.raises(DifferentUser):
        await log_in(device.account, OTHER, PASSWORD)
    assert (await log_in(device.account, EMAIL, PASSWORD)).state == "logged_in"


async def test_logging_out_works_without_a_network(device: Device) -> None:
    await device.log_in()
    device.cloud.fail_next("sign_out", CloudUnavailable("no network"))
    assert (await device.account.log_out()).state == "logged_out"
    assert device.tokens.session is None


async def test_a_good_session_is_used_without_asking_anybody(device: Device) -> None:
    await device.log_in()
    for _ in range(5):
        await device.account.session()
    assert device.cloud.count("refresh") == 0


@pytest.mark.parametrize("left", [59.0, 0.0, -1.0, -10 * 86_400.0])
async def test_a_session_near_its_end_is_refreshed_before_it_is_used(
    device: Device, clock: FixedClock, left: float
) -> None:
    await device.log_in()
    old = await device.account.session()
    clock.advance(TOKEN_SECONDS - left)
    fresh = await device.account.session()
    assert fresh.access_token != old.access_token
    assert device.tokens.session == fresh, "what was refreshed is stored before it is used"
    assert device.cloud.count("refresh") == 1


async def test_a_token_that_ran_out_before_it_was_used_is_no_reason_to_log_in_again(
    device: Device, clock: FixedClock, server: FakeServer
) -> None:
    """The machine sleeps between a refresh and its use (seed 4515)."""
    await device.log_in()
    clock.advance(TOKEN_SECONDS)
    naps = [TOKEN_SECONDS, 0.0]

    async def call(session: AuthSession) -> str:
        clock.advance(naps.pop(0))
        return server.accounts.user_of(session.access_token)

    assert await with_fresh_token(device.account, call, timeout=1.0) == "user-1"
    assert device.cloud.count("refresh") == 2


@pytest.mark.parametrize(("nap", "refreshes"), [(0.0, 1), (TOKEN_SECONDS, MAX_TOKENS)])
async def test_where_no_token_is_ever_good_the_refreshing_ends(
    device: Device, clock: FixedClock, nap: float, refreshes: int
) -> None:
    await device.log_in()

    async def call(_: AuthSession) -> None:
        clock.advance(nap)
        raise LoginRequired("the server does not know this token")

    with pytest.raises(Forbidden):
        await with_fresh_token(device.account, call, timeout=1.0)
    assert device.cloud.count("refresh") == refreshes


async def test_an_expired_token_is_refreshed_once_however_many_ask(device: Device, clock: FixedClock) -> None:
    await device.log_in()
    clock.advance(TOKEN_SECONDS)
    device.cloud.pause_calls()
    asking = [asyncio.create_task(device.account.session()) for _ in range(5)]
    await device.cloud.wait_for_call()
    device.cloud.gate.set()
    sessions = await asyncio.gather(*asking)
    assert device.cloud.count("refresh") == 1
    assert len({session.access_token for session in sessions}) == 1


async def test_a_token_that_the_server_refused_is_refreshed_once_however_many_were_refused(device: Device) -> None:
    await device.log_in()
    old = await device.account.session()
    sessions = await asyncio.gather(*(device.account.session(rejected_token=old.access_token) for _ in range(5)))
    assert device.cloud.count("refresh") == 1
    assert {session.access_token for session in sessions} != {old.access_token}


async def test_two_processes_refresh_once(tmp_path: Path, server: FakeServer, clock: FixedClock) -> None:
    """Two accounts with one store and one lock file, like two processes."""
    async with open_device(tmp_path / "a", server, clock=clock) as one:
        await one.log_in()
        two = Account(one.database, one.cloud, lambda: one.tokens, lock=tmp_path / "a" / "session.lock", clock=clock)
        await two.session()
        clock.advance(TOKEN_SECONDS)
        one.cloud.pause_calls()
        asking = [asyncio.create_task(account.session()) for account in (one.account, two)]
        await one.cloud.wait_for_call()
        one.cloud.gate.set()
        first, second = await asyncio.gather(*asking)
    assert one.cloud.count("refresh") == 1
    assert first == second


async def test_a_revoked_session_is_forgotten_and_a_login_is_asked_for(
    device: Device, server: FakeServer, clock: FixedClock
) -> None:
    await device.log_in()
    server.accounts.revoke_sessions()
    clock.advance(TOKEN_SECONDS)
    for _ in range(3):
        with pytest.raises(LoginRequired):
            await device.account.session()
    assert device.cloud.count("refresh") == 1, "no loop"
    assert (await device.account.state()).state == "logged_out"


async def test_without_a_network_an_expired_session_is_kept_and_not_used(device: Device, clock: FixedClock) -> None:
    await device.log_in()
    old = device.tokens.session
    clock.advance(TOKEN_SECONDS)
    device.cloud.permanent_failure = CloudUnavailable("no network")
    with pytest.raises(CloudUnavailable):
        await device.account.session()
    assert device.tokens.session == old
    device.cloud.permanent_failure = None
    assert (await device.account.session()).user_id == "user-1"


async def test_an_apps_own_token_is_never_refreshed_here(device: Device, clock: FixedClock) -> None:
    await device.log_in()
    assert device.tokens.session is not None
    device.tokens.session = replace(device.tokens.session, refresh_token=None)
    assert (await device.account.session()).refresh_token is None
    clock.advance(TOKEN_SECONDS)
    with pytest.raises(LoginRequired):
        await device.account.session()
    assert device.cloud.count("refresh") == 0


async def test_a_logout_in_another_process_is_noticed(device: Device) -> None:
    await device.log_in()
    await device.account.session()
    device.tokens.delete()
    with pytest.raises(LoginRequired):
        await device.account.session()


async def test_a_login_in_another_process_is_noticed(
    tmp_path: Path, device: Device, server: FakeServer, clock: FixedClock
) -> None:
    other = Account(device.database, device.cloud, lambda: device.tokens, lock=tmp_path / "lock", clock=clock)
    with pytest.raises(LoginRequired):
        await device.account.session()
    await log_in(other, EMAIL, PASSWORD)
    assert (await device.account.session()).user_id == "user-1"


async def test_an_answer_to_a_refresh_that_was_lost_is_asked_for_once_more(
    device: Device, server: FakeServer, clock: FixedClock
) -> None:
    await device.log_in()
    clock.advance(TOKEN_SECONDS)
    lost = await device.cloud.inner.auth.refresh_session(stored(device))
    device.cloud.fail_next("refresh", CloudUnavailable("the answer was lost"))
    fresh = await device.account.session()
    assert device.cloud.count("refresh") == 2
    assert fresh.refresh_token == lost.refresh_token == stored(device).refresh_token


async def test_a_refresh_that_gets_no_answer_twice_keeps_the_session(device: Device, clock: FixedClock) -> None:
    await device.log_in()
    before = stored(device)
    clock.advance(TOKEN_SECONDS)
    device.cloud.fail_next("refresh", CloudUnavailable("lost"), CloudUnavailable("lost again"))
    with pytest.raises(CloudUnavailable):
        await device.account.session()
    assert stored(device) == before
    assert (await device.account.session()).access_token != before.access_token


async def test_a_login_server_that_asks_for_patience_is_not_asked_again_at_once(
    device: Device, clock: FixedClock
) -> None:
    await device.log_in()
    clock.advance(TOKEN_SECONDS)
    device.cloud.fail_next("refresh", RateLimited("too many"))
    with pytest.raises(RateLimited):
        await device.account.session()
    assert device.cloud.count("refresh") == 1


async def test_a_token_that_was_replaced_while_we_are_stopped_is_stored(device: Device, clock: FixedClock) -> None:
    await device.log_in()
    before = stored(device)
    clock.advance(TOKEN_SECONDS)
    device.cloud.pause_calls()
    asking = asyncio.create_task(device.account.session())
    await device.cloud.wait_for_call()
    asking.cancel()
    device.cloud.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert stored(device).refresh_token != before.refresh_token
    assert (await device.account.session()).access_token == stored(device).access_token
    assert device.cloud.count("refresh") == 1


def test_a_server_that_never_answers_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    async def main() -> float:
        clock = LoopClock()
        async with open_device(tmp_path / "a", new_server(clock), clock=clock, single_threaded=True) as device:
            await device.log_in()
            await asyncio.sleep(TOKEN_SECONDS)
            device.cloud.pause_calls()
            asking = asyncio.create_task(device.account.session())
            await device.cloud.wait_for_call()
            began = asyncio.get_running_loop().time()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            return asyncio.get_running_loop().time() - began

    assert run_in_virtual_time(main()) == pytest.approx(REFRESH_GRACE_SECONDS)


async def test_a_logout_during_a_refresh_is_not_undone_by_it(device: Device, clock: FixedClock) -> None:
    await device.log_in()
    clock.advance(TOKEN_SECONDS)
    device.cloud.pause_calls()
    asking = asyncio.create_task(device.account.session())
    await device.cloud.wait_for_call()
    leaving = asyncio.create_task(device.account.log_out())
    for _ in range(20):
        await asyncio.to_thread(int)  # let the logout's threads run
    device.cloud.gate.set()
    await asyncio.gather(asking, leaving, return_exceptions=True)
    assert device.tokens.session is None
    assert (await device.account.state()).state == "logged_out"


async def test_a_stored_session_of_another_user_is_not_used(device: Device, server: FakeServer) -> None:
    """A keychain entry or a file can outlive its database."""
    device.tokens.session = server.accounts.sign_in_with_password(parse_contact(email=OTHER), PASSWORD)
    with pytest.raises(LoginRequired):
        await device.account.session()
    await device.log_in()
    device.tokens.session = server.accounts.sign_in_with_password(parse_contact(email=OTHER), PASSWORD)
    with pytest.raises(LoginRequired):
        await device.account.session()
    assert (await device.account.state()).state == "logged_out"


async def test_two_first_logins_at_once_make_it_one_users(device: Device) -> None:
    outcomes = await asyncio.gather(
        log_in(device.account, EMAIL, PASSWORD), log_in(device.account, OTHER, PASSWORD), return_exceptions=True
    )
    assert sum(isinstance(outcome, DifferentUser) for outcome in outcomes) == 1
    state = await device.account.state()
    assert device.tokens.session is not None
    assert device.tokens.session.user_id == state.user_id


async def test_a_locked_keychain_is_an_error_and_changes_nothing(device: Device) -> None:
    await device.log_in()

    class Locked(FakeSessionStorage):
        def load(self) -> AuthSession | None:
            raise StorageError("the keychain is locked")

    locked = Locked()
    account = Account(device.database, device.cloud, lambda: locked, lock=device.folder / "lock", clock=device.clock)
    with pytest.raises(StorageError):
        await account.session()


async def test_without_a_project_there_is_nothing_to_log_in_to(device: Device) -> None:
    account = Account(
        device.database, None, lambda: device.tokens, lock=device.folder / "session.lock", clock=device.clock
    )
    assert (await account.state()).state == "not_configured"
    with pytest.raises(CloudNotConfigured):
        await log_in(account, EMAIL, PASSWORD)
    with pytest.raises(CloudNotConfigured):
        await account.session()


async def test_a_process_that_holds_the_lock_for_ever_does_not_make_us_wait_for_ever(
    tmp_path: Path, server: FakeServer, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sync.cloud.auth.account.LOCK_TIMEOUT", 0.0)
    async with open_device(tmp_path / "a", server, clock=clock) as device:
        await device.log_in()
        clock.advance(TOKEN_SECONDS)
        with FileLock(tmp_path / "a" / "session.lock"), pytest.raises(CloudUnavailable):
            await device.account.session()
        assert (await device.account.session()).user_id == "user-1"


async def test_the_lock_of_a_killed_process_does_not_stay(device: Device, clock: FixedClock) -> None:
    await device.log_in()
    clock.advance(TOKEN_SECONDS)
    held = "import sys; from filelock import FileLock; FileLock(sys.argv[1]).acquire(); print(1, flush=True); input()"
    holder = subprocess.Popen(  # noqa: ASYNC220 - it starts in a millisecond
        [sys.executable, "-c", held, str(device.folder / "session.lock")],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    await asyncio.to_thread(holder.stdout.readline)
    holder.kill()
    holder.communicate(timeout=60)
    assert (await device.account.session()).user_id == "user-1"


async def test_neither_tokens_nor_passwords_reach_the_database(
    tmp_path: Path, device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG"):
        await device.log_in()
        await device.replicator.sync_now()
    assert device.tokens.session is not None
    secrets = [device.tokens.session.access_token, device.tokens.session.refresh_token or "", PASSWORD]
    stored = b"".join(path.read_bytes() for path in device.folder.iterdir() if path.is_file())
    for secret in secrets:
        assert secret.encode() not in stored
        assert secret not in caplog.text


async def test_the_file_of_a_session_holds_it_and_nothing_else_does(
    tmp_path: Path, device: Device, server: FakeServer, clock: FixedClock
) -> None:
    store = FileSessionStorage(tmp_path / "session.json")
    account = Account(device.database, device.cloud, lambda: store, lock=tmp_path / "lock", clock=clock)
    await log_in(account, EMAIL, PASSWORD)
    assert json.loads((tmp_path / "session.json").read_bytes())["user_id"] == "user-1"
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("session.json", "lock")} == {0o600}
    assert account.warning
    await account.log_out()
    assert not (tmp_path / "session.json").exists()
