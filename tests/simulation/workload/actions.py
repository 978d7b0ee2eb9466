"""The actions of a plan, one function for each, and those of the quiet tail."""

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from sync.app import App
from sync.cloud.contact import parse_contact
from sync.cloud.replication.replicator import Replicator
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.read.results import LoadResult
from sync.document.surfaces.notices import Notice
from sync.log.event_types import EXCHANGE_RECORDED, PAYLOAD_FORGOTTEN
from sync.open_app import AppMode, open_app
from tests.simulation.checks.expected_state import TOKEN, EditorSave, ExpectedFact, words_of
from tests.simulation.host.device import SimulatedDevice
from tests.simulation.host.simulated_host import CURRENT, SimulatedProcess
from tests.simulation.workload import client_actions, fact_actions, lesson_actions
from tests.simulation.workload.editor import digest_of
from tests.simulation.workload.plan import STATING, PlanStep

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Act = Callable[["Simulator", SimulatedDevice, PlanStep, random.Random], Coroutine[Any, Any, None]]

MOST_DEVICES: Final = 5
CALLERS: Final = 3  # at once
A_MOMENT: Final = 0.001  # seconds
SKEWS: Final = (3_600.0, 86_400.0, 30 * 86_400.0, 3 * 365 * 86_400.0)  # seconds a clock jumps by, either way
PASSWORD: Final = "a long password"
FULL_PAGES: Final = 1  # `max_page_count` never goes below what is there already
ERASURE_WAITS: Final = """select 1 from events where type = 'payload_forgotten' and extra like '%"waits"%' limit 1"""
NO_LIMIT: Final = 1 << 30


# --- the app ------------------------------------------------------------------------------------------------------


async def update_memory(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """The app records an exchange."""
    question = world.expected.new_sentence(chance.randint(1, 3))
    answer = world.expected.new_sentence(chance.randint(1, 3))
    if chance.random() < 0.1:
        secret = f"{TOKEN}{''.join(chance.choices('abcdefghijkmnpqrstuvyz0123456789', k=36))}"
        world.expected.secrets.append(secret)
        question += f" 我的令牌是 {secret}"
    app = await device.started()
    if app is None:
        return
    device.unanswered[f"key-{step.number}"] = (
        device.owner,
        ExchangeInput(question, answer, idempotency_key=f"key-{step.number}"),
    )
    await _resend_one(world, device, app, f"key-{step.number}", step.number)


async def repeat_update(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """The app repeats a request that got no response."""
    app = await device.started()
    if app is not None and device.unanswered:
        await _resend_one(world, device, app, chance.choice(sorted(device.unanswered)), step.number)


async def _resend_one(world: "Simulator", device: SimulatedDevice, app: App, key: str, step: int) -> None:
    said_by, exchange = device.unanswered[key]
    world.expected.restate(exchange.user_message + " " + exchange.ai_response)
    words = tuple(words_of(exchange.user_message + " " + exchange.ai_response))
    fact = next((fact for fact in world.expected.facts if fact.words == words), None)
    fact = fact or world.expected.add(ExpectedFact(words, device.name, said_by or device.owner, step, must=False))

    async def updating() -> None:
        updated = await app.memory_service.update(exchange)
        fact.event_id = updated.event_id

    if await world.run_on_device(device, f"update {key}", updating):
        fact.must, fact.step = True, world.at
        device.unanswered.pop(key, None)


async def append_event(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """Another program appends an event; lessons stay on the device."""
    app = await device.started()
    if app is None:
        return
    words, local = world.expected.new_sentence(2), chance.random() < 0.4
    fact = ExpectedFact(
        tuple(words_of(words)), device.name, device.owner, step.number, stays_here=local, shown=False, must=False
    )
    world.expected.add(fact)

    async def noting() -> None:
        kind = "lesson_learned" if local else "note_taken"
        builder = replace(app.draft_builder, store_messages=True)  # else fields of unknown types are not kept
        draft = builder.build({"type": kind, "payload": {"text": words}})
        recorded = await app.log.append([draft])
        fact.event_id = recorded[0].event.event_id

    fact.must = await world.run_on_device(device, "note", noting)
    fact.step = world.at


async def helper_event(world: "Simulator", device: SimulatedDevice, step: PlanStep, _: random.Random) -> None:
    """A command in another process records beside the running program."""
    process = SimulatedProcess(device.name, device.chance, device.disk, world.trace_event, slowest=device.slowest)
    words = world.expected.new_sentence(2)
    fact = ExpectedFact(tuple(words_of(words)), device.name, device.owner, step.number, must=False)
    if device.app is None:
        return
    world.expected.add(fact)

    async def commanding() -> None:
        CURRENT.set(process)
        cloud = device.cloud_of(process)
        async with open_app(device.settings, AppMode.GUEST, clock=device.clock, cloud=cloud) as app:
            owner = await app.account.owner_id()
            updated = await app.memory_service.update(ExchangeInput(words, "好的"))
            fact.owner, fact.event_id = owner, updated.event_id

    fact.must = await world.run_on_device(device, "helper", commanding)
    fact.step = world.at


async def load(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    app = await device.started()
    if app is not None:
        await _load_and_check(world, device, app, chance.choice([0, 0, 800]))


async def _load_and_check(world: "Simulator", device: SimulatedDevice, app: App, wait: int) -> LoadResult | None:
    """Load; the result has all that this device recorded, nothing of other accounts, nothing erased."""
    database = app.log.database.path
    before, certain = device.events_of(database), _acknowledged_words(world, device, app)
    found: LoadResult | None = None

    async def loading() -> None:
        nonlocal found
        found = await app.memory_service.load(wait_ms=wait)

    if not await world.run_on_device(device, f"load {wait}", loading) or found is None:
        return None
    client_actions.check_labels(world, device, found.content)
    loaded_words, owner = set(words_of(found.content)), client_actions.owner_of(device, app)
    if lost := sorted(certain - world.expected.taken - loaded_words):
        world.add_defect(f"{device.name}: a load does not tell {lost[0]}")
    others = {word for other in found.devices for line in other.lines for word in words_of(line.text)}
    if lost := sorted(others - loaded_words):
        world.add_defect(f"{device.name}: a load does not tell {lost[0]} of another device")
    if forgotten := sorted(loaded_words & client_actions.erased_words(world, before)):
        world.add_defect(f"{device.name}: a load tells {forgotten[0]}, which was forgotten")
    owners = world.expected.owners()
    strange = sorted(word for word in loaded_words if owners.get(word) not in {None, owner})
    if strange and owner is not None:
        world.add_defect(f"{device.name}: a load of {owner} holds {strange[0]} of {owners[strange[0]]}")
    return found


def _acknowledged_words(world: "Simulator", device: SimulatedDevice, app: App) -> set[str]:
    """The words of acknowledged events in this log."""
    rows, owner = device.events_of(app.log.database.path), client_actions.owner_of(device, app)
    facts = (
        fact
        for fact in world.expected.required_facts()
        if fact.event_id in rows and fact.shown and fact.device == device.name and fact.owner == owner
    )
    return {word for fact in facts for word in fact.words}


async def app_save(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """The app's settings page saves the whole document."""
    await _save_page(world, device, step, chance)


async def _save_page(
    world: "Simulator",
    device: SimulatedDevice,
    step: PlanStep,
    chance: random.Random,
    meanwhile: Callable[[list[str]], Coroutine[Any, Any, str | None]] | None = None,
) -> None:
    """Load, change and save. `meanwhile` gets the lines of the page before its change, and may choose one to change."""
    app = await device.started()
    if app is None:
        return
    page, change = device.page, None
    page.whose = device.owner

    async def saving() -> None:
        nonlocal change
        loaded = await app.memory_service.load(wait_ms=0)
        page.buffer = loaded.document
        line = None if meanwhile is None else await meanwhile(page.lines)
        change = page.change(chance, step.number, line)
        if change is not None:
            world.expected.written(device.name, change)
            world.expected.restate(page.buffer)
            await app.document.save(page.buffer, loaded.document_sha256, confirmed=False)

    done = await world.run_on_device(device, "app save", saving)
    if change is not None:
        if done:
            world.expected.save_seen(device.name, change)
        else:
            world.expected.save_unseen(change)


# --- the user -----------------------------------------------------------------------------------------------------


async def edit(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    await _edit(world, device, step, chance, fresh=True, how=chance.choice(["in place", "atomic"]))


async def stale_save(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """Change and save a buffer that was loaded earlier."""
    await _edit(world, device, step, chance, fresh=False, how=chance.choice(["in place", "atomic"]))


async def torn_save(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    await _edit(world, device, step, chance, fresh=chance.random() < 0.5, how="torn")


async def save_in_pieces(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """A program empties the file and writes it in pieces; the sidecar reads it in the pauses."""
    if _has_editable_buffer(device, fresh=chance.random() < 0.5):
        change = device.person.change(chance, step.number)
        await _save(world, device, change, "paused", partial(refresh, world, device, step, chance))


async def stale_after_forget(
    world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random
) -> None:
    """Erase what the editor still shows; then save the editor, with a new line."""
    app = await device.started()
    if app is None or not _has_editable_buffer(device, fresh=True):
        return
    person, database = device.person, app.log.database.path
    before, shown = device.events_of(database), set(words_of(device.person.buffer))
    found = sorted(
        name for name, row in before.items() if row.type == EXCHANGE_RECORDED and row.words and row.words <= shown
    )
    if not found or not await client_actions.request_erasure(world, device, app, event_id := chance.choice(found)):
        return
    if (
        not await world.run_on_device(device, "settle", app.reconcile_memory_file)
        or person.saving
        or person.buffer.count("\n- ") < 1
    ):
        return
    before = device.events_of(database)
    words = before[event_id].words | client_actions.erased_words(world, before) if event_id in before else set()
    await _save(world, device, person.add(chance, step.number), "in place")
    saved = person.buffer  # a line of it that is edited during the next call is recorded again
    is_read = await world.run_on_device(device, "settle", app.reconcile_memory_file)
    if is_read and device.app is app and person.buffer == saved:
        after = device.events_of(database)
        typed = {word for name in after.keys() - before.keys() for word in after[name].words}
        if back := sorted(words & typed & shown):
            world.add_defect(f"{device.name}: a stale buffer brings back {back[0]}, which was forgotten")


async def same_line(world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """The app's page and an editor change the same line before either shows the other's change."""
    await refresh(world, device, step, chance)

    async def in_the_editor(lines: list[str]) -> str | None:
        person = device.person
        if not _has_editable_buffer(device, fresh=True) or not (common := sorted({*lines} & {*person.lines})):
            return None
        line = chance.choice(common)
        change, how = person.change(chance, step.number, line), chance.choice(["in place", "atomic"])
        app = CURRENT.set(None)  # the editor is no part of the app, whose faults and promises are not its own
        try:
            await _save(world, device, change, how)
        finally:
            CURRENT.reset(app)
        return line

    await _save_page(world, device, step, chance, in_the_editor)


async def _edit(
    world: "Simulator", device: SimulatedDevice, step: PlanStep, chance: random.Random, *, fresh: bool, how: str
) -> None:
    if _has_editable_buffer(device, fresh=fresh):
        await _save(world, device, device.person.change(chance, step.number), how)


def _has_editable_buffer(device: SimulatedDevice, *, fresh: bool) -> bool:
    """Whether the editor has a buffer that may be changed now."""
    person = device.person
    if "removing" in device.installation():
        return False  # as in `log_out`: the buffer would belong to a removed memory
    return not person.saving and ((not fresh and bool(person.buffer)) or person.load(device.document_owner()))


async def _save(
    world: "Simulator",
    device: SimulatedDevice,
    change: EditorSave | None,
    how: str,
    look: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    person = device.person
    if change is not None:
        await person.save(change, device.versions, how, look)
        world.trace_event(f"{device.name} saved {how} {change.digest[:12]}")


async def _overwrite_file(world: "Simulator", device: SimulatedDevice, data: bytes | None) -> None:
    path = device.settings.memory_file
    if device.person.saving or not path.exists() or not device.has_version(digest_of(path.read_bytes())):
        return  # damaging an unread version would lose it, and not through the program
    device.person.check_saves_seen(device.versions)
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    device.on_external_save(path)
    world.trace_event(f"{device.name} spoiled the file")


async def empty_file(world: "Simulator", device: SimulatedDevice, _: PlanStep, __: random.Random) -> None:
    await _overwrite_file(world, device, b"")


async def delete_file(world: "Simulator", device: SimulatedDevice, _: PlanStep, __: random.Random) -> None:
    await _overwrite_file(world, device, None)


async def truncate_file(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    path = device.settings.memory_file
    if path.exists():
        text = path.read_bytes().decode("utf-8", "replace")
        await _overwrite_file(world, device, text[: chance.randrange(1, max(2, len(text) - 40))].encode())


# --- the program --------------------------------------------------------------------------------------------------


async def refresh(world: "Simulator", device: SimulatedDevice, _: PlanStep, __: random.Random) -> None:
    app = await device.started()
    if app is not None:
        await world.run_on_device(device, "settle", app.reconcile_memory_file)


async def sync(world: "Simulator", device: SimulatedDevice, _: PlanStep, __: random.Random) -> None:
    app = await device.started()
    if app is not None and app.replicator is not None:
        await world.run_on_device(device, "sync", app.replicator.sync_now)


async def wait(world: "Simulator", _: SimulatedDevice, __: PlanStep, chance: random.Random) -> None:
    await asyncio.sleep(chance.choice([5.0, 30.0]))
    world.pass_time(chance.choice([0.0, 120.0, 700.0, 3_700.0]))


async def power_loss(_: "Simulator", device: SimulatedDevice, __: PlanStep, ___: random.Random) -> None:
    device.lose_power()
    await device.wait_until_dead()


async def shift_clock(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    device.clock.skew += chance.choice(SKEWS) * chance.choice([1, -1])
    world.trace_event(f"{device.name} is {device.clock.skew:.0f} s wrong")


async def fill_disk(_: "Simulator", device: SimulatedDevice, __: PlanStep, chance: random.Random) -> None:
    """SQLite reports a full disk for a while."""
    _limit_pages(device, FULL_PAGES)
    await asyncio.sleep(chance.uniform(1.0, 20.0))
    _limit_pages(device, NO_LIMIT)


def _limit_pages(device: SimulatedDevice, pages: int) -> None:
    if device.app is not None:
        connection: Any = device.app.log.database._write_engine.raw_connection().driver_connection
        connection.execute(f"pragma max_page_count = {pages}")


# --- the cloud ----------------------------------------------------------------------------------------------------


async def disconnect(_: "Simulator", device: SimulatedDevice, __: PlanStep, ___: random.Random) -> None:
    device.line.down = True


async def reconnect(_: "Simulator", device: SimulatedDevice, __: PlanStep, ___: random.Random) -> None:
    device.line.down = False


async def server_down(world: "Simulator", _: SimulatedDevice, __: PlanStep, ___: random.Random) -> None:
    world.server.down = True


async def server_up(world: "Simulator", _: SimulatedDevice, __: PlanStep, ___: random.Random) -> None:
    world.server.down = world.cloud_away


async def expire(world: "Simulator", device: SimulatedDevice, _: PlanStep, __: random.Random) -> None:
    """All access tokens expire, and several callers notice at once."""
    world.server.accounts.expire_tokens()
    app = device.app
    if app is not None:
        listings = (world.run_on_device(device, "devices", app.devices.list) for _ in range(CALLERS))
        await asyncio.gather(*listings)


async def end_sessions(world: "Simulator", _: SimulatedDevice, __: PlanStep, ___: random.Random) -> None:
    world.server.accounts.revoke_sessions()


async def restore(world: "Simulator", _: SimulatedDevice, __: PlanStep, chance: random.Random) -> None:
    """Restore the server from a backup."""
    user = chance.choice(world.users)
    world.server.restore(user, max(0, world.server.user_logs[user].head - chance.randint(1, 8)))


async def reset_server(world: "Simulator", _: SimulatedDevice, step: PlanStep, chance: random.Random) -> None:
    """Recreate the server's log, with part of its events or none."""
    user = chance.choice(world.users)
    keep = chance.choice([0, world.server.user_logs[user].head // 2])
    world.server.restore(user, keep, epoch=f"epoch-{step.number}")


async def reject_one_event(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """The server permanently refuses one pending event."""
    stored = {event.event_id for memory in world.server.user_logs.values() for event in memory.events}
    question = (
        "select event_id, type, payload from events join deliveries using (position) "
        "where state = 'pending' order by position"
    )
    held = [row for database, _ in device.profiles() for row in device.query(database, question)]
    waiting = [row for row in held if row[0] not in stored]
    if waiting:
        chosen, kind, payload = chance.choice(waiting)
        world.server.refused_event_ids.add(chosen)
        if kind == PAYLOAD_FORGOTTEN:  # then the request reaches no other device
            world.unheard |= set(json.loads(payload)["event_ids"])
        world.trace_event(f"the server refuses {chosen}")


# --- accounts and installations -------------------------------------------------------------------------------------


async def log_in(world: "Simulator", device: SimulatedDevice, user: int) -> None:
    app = await device.started()
    if app is None:
        return
    contact = parse_contact(email=world.email(user))
    done = await world.run_on_device(device, f"log in {user}", lambda: app.login_flow.log_in(contact, PASSWORD))
    device.login_failed = not done
    await device.refresh_owner()  # also after an error: the profile may have changed by then


async def log_in_again(world: "Simulator", device: SimulatedDevice, _: PlanStep, __: random.Random) -> None:
    """Log in again after an involuntary logout."""
    app, owner = await device.started(), device.owner
    if app is not None and owner is not None and not app.account.is_logged_in:
        await log_in(world, device, world.users.index(owner))


async def switch_account(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    await log_in(world, device, chance.randrange(len(world.users)))


async def log_out(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    app = await device.started()
    if app is not None:
        remove = chance.random() < 0.3 and "restore" not in world.plan.kinds  # see `make_plan`
        device.was_recreated, device.emptied = device.was_recreated or remove, device.emptied or remove
        owner = device.owner
        if (
            await world.run_on_device(device, f"log out {remove}", lambda: app.login_flow.log_out(remove=remove))
            and remove
        ):
            world.expected.profile_removed(device.name, owner)


async def revoke(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """One device revokes another, once in a run."""
    app = await device.started()
    others = [other for other in world.devices if other is not device and other.owner == device.owner]
    revoked = [row for memory in world.server.user_logs.values() for row in memory.devices.values() if row.revoked_at]
    if app is not None and others and not revoked:
        other = chance.choice(others).settings.device_id
        assert other is not None
        await world.run_on_device(device, f"revoke {other}", lambda: app.devices.revoke(other))


async def copy_data_folder(world: "Simulator", device: SimulatedDevice, _: PlanStep, __: random.Random) -> None:
    """Copy the home folder to another machine with another device id."""
    if len(world.devices) >= MOST_DEVICES or not device.owner or device.person.saving:
        return
    if any(owner is None for _, owner in device.profiles()):
        return
    if (typed := device.unread_file()) is not None:  # both will read it as typed there
        world.expected.loose |= set(words_of(typed))
    copy = world.add_device("abcde"[len(world.devices)])
    copy.copy_of, copy.was_recreated = device.name, True
    device.copied_to(copy.folder)
    (copy.folder / "data" / "sidecar.lock").unlink(missing_ok=True)
    copy.leave_pages_behind()
    world.copied = True
    world.trace_event(f"{device.name} was copied to {copy.name}")


async def back_up(_: "Simulator", device: SimulatedDevice, step: PlanStep, __: random.Random) -> None:
    """Copy the whole home away while the program runs."""
    if device.owner and not device.person.saving and all(owner for _, owner in device.profiles()):
        folder = device.folder.with_name(f"{device.name}-backup-{step.number}")
        device.copied_to(folder)
        device.backup = (step.number, folder)


async def roll_back(world: "Simulator", device: SimulatedDevice, _: PlanStep, __: random.Random) -> None:
    """Restore the home from its backup; later events survive only elsewhere."""
    if device.backup is None or device.person.saving:
        return
    step, folder = device.backup
    while True:
        device.kill("restored from a backup")
        await device.wait_until_dead()
        await asyncio.sleep(A_MOMENT)  # callers whose result arrived before note it now
        if (
            device.life is None
        ):  # otherwise it was started meanwhile, and a backup is not restored under a running program
            break
    device.person.check_saves_seen(device.versions)
    held = {
        word
        for memory in world.server.user_logs.values()
        for event in memory.events
        for word in (event.event_id, *words_of(str(event)))
    }
    world.expected.rolled_back(device.name, step, held)
    world.copied = True
    device.emptied = True
    device.restored_from(folder)


# --- the quiet tail -------------------------------------------------------------------------------------------------


async def restart_and_log_in(world: "Simulator", device: SimulatedDevice) -> None:
    """Start, repeat unanswered requests, and log in as each account with a profile here; the last stays."""
    await device.wait_until_dead()
    for _ in range(3):  # an application that is closing is reopened
        if await device.started() is not None:
            break
    app = device.app
    if app is None:
        world.add_defect(f"{device.name} does not start although nothing is wrong")
        return
    _limit_pages(device, NO_LIMIT)
    for key in sorted(device.unanswered):
        await _resend_one(world, device, app, key, len(world.plan.steps))
    here = [user for _, user in device.profiles() if user]
    default = world.users[world.devices.index(device) % len(world.users)]
    stays = device.owner or default
    for user in [*sorted(set(here) - {stays}), stays]:
        await _as_user(world, device, user)
    device.person.check_saves_seen(device.versions)


async def _as_user(world: "Simulator", device: SimulatedDevice, user: str) -> None:
    # another account is logged in, the login was refused, or the session has ended
    if device.owner != user or device.login_failed or not await sync_round(world, device):
        await log_in(world, device, world.users.index(user))
        await sync_round(world, device)
    if device.has_unsent():  # received erasure requests have removed lines
        await sync_round(world, device)


async def sync_round(world: "Simulator", device: SimulatedDevice) -> bool:
    """Read the file, answer warnings, and sync; return whether that worked.

    If the log has changed, sync again, as the program's own loop does: the document has changed.
    """
    has_changed = True

    async def syncing(app: App, replicator: Replicator) -> None:
        nonlocal has_changed
        before = app.log.changed.count
        await replicator.sync_now()
        has_changed = app.log.changed.count != before

    app = await device.started()
    if app is None:
        world.add_defect(f"{device.name} does not start although nothing is wrong")
        return False
    await world.run_on_device(device, "settle", app.reconcile_memory_file)
    if world.is_asking:
        await client_actions.wait_for_background_work(world, device, app)
    await _answer_questions(world, device, app)
    while has_changed:
        replicator = app.replicator
        if replicator is None or not await world.run_on_device(device, "sync", partial(syncing, app, replicator)):
            return False
        await world.run_on_device(device, "settle", app.reconcile_memory_file)
        if world.is_asking:
            await client_actions.wait_for_background_work(world, device, app)
        await _answer_questions(world, device, app)
    return True


async def _answer_questions(world: "Simulator", device: SimulatedDevice, app: App) -> None:
    """The user wants a lost file back, admits their devices, and wants the erasures that wait for them."""
    await world.run_on_device(device, "admit", lambda: admit_devices(world, device, app))
    if app.document.notices & {Notice.MASS_DELETE, Notice.MISSING}:
        await world.run_on_device(device, "resolve", lambda: app.document.resolve("restore"))
    elif device.query(app.log.database.path, ERASURE_WAITS):
        await world.run_on_device(device, "resolve", lambda: app.document.resolve("accept"))


async def admit_devices(world: "Simulator", device: SimulatedDevice, app: App) -> None:
    registry = await app.devices.registry()
    waiting = registry.waiting() if registry.is_admitted(app.log.device_id) else []
    if waiting and STATING in world.plan.kinds:
        await fact_actions.check_unadmitted(world, device, app, waiting)
    for device_id in waiting:
        await app.devices.record_admission(device_id)


async def views_of_others(world: "Simulator", device: SimulatedDevice) -> dict[str, tuple[Any, ...]]:
    """What this device shows of each other device."""
    app = device.app
    if app is None or (loaded := await _load_and_check(world, device, app, 0)) is None:
        return {}
    return {
        shown.device_id: (shown.name, *((line.date, line.text) for line in shown.lines)) for shown in loaded.devices
    }


ACTS: Final[Mapping[str, Act]] = {
    "say": update_memory,
    "again": repeat_update,
    "note": append_event,
    "helper": helper_event,
    "load": load,
    "app save": app_save,
    "edit": edit,
    "stale": stale_save,
    "torn": torn_save,
    "pause": save_in_pieces,
    "stale after forget": stale_after_forget,
    "same line": same_line,
    "empty": empty_file,
    "delete": delete_file,
    "cut off": truncate_file,
    "look": refresh,
    "sync": sync,
    "wait": wait,
    "power loss": power_loss,
    "clock": shift_clock,
    "full": fill_disk,
    "cut": disconnect,
    "mend": reconnect,
    "server down": server_down,
    "server up": server_up,
    "expire": expire,
    "end sessions": end_sessions,
    "restore": restore,
    "replace": reset_server,
    "poison": reject_one_event,
    "come back": log_in_again,
    "switch": switch_account,
    "log out": log_out,
    "revoke": revoke,
    "clone": copy_data_folder,
    "back up": back_up,
    "roll back": roll_back,
    **lesson_actions.ACTS,
    **fact_actions.ACTS,
}
