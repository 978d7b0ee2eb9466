"""What can happen on a device: one function for each action of a plan, and those of the quiet tail."""

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sync.app import App, Role, open_app
from sync.cloud.contact import contact_of
from sync.cloud.replicator import Replicator
from sync.document.answers import Loaded
from sync.document.capture import EXCHANGE, Exchange
from sync.document.remarks import Notice
from sync.log.model import FORGOTTEN
from tests.simulation import asking
from tests.simulation.device import Device
from tests.simulation.history import Step
from tests.simulation.ledger import TOKEN, Fact, Save, words_of
from tests.simulation.machine import CURRENT, Process
from tests.simulation.person import digest_of

if TYPE_CHECKING:
    from tests.simulation.world import World

Act = Callable[["World", Device, Step, random.Random], Coroutine[Any, Any, None]]

MOST_DEVICES: Final = 5
CALLERS: Final = 3  # at once
A_MOMENT: Final = 0.001  # seconds
SKEWS: Final = (3_600.0, 86_400.0, 30 * 86_400.0, 3 * 365 * 86_400.0)  # seconds a clock jumps by, either way
PASSWORD: Final = "a long password"
FULL_PAGES: Final = 1  # `max_page_count` never goes below what is there already
NO_LIMIT: Final = 1 << 30


# --- the app ------------------------------------------------------------------------------------------------------


async def say(world: "World", device: Device, step: Step, chance: random.Random) -> None:
    """The app has had a conversation and updates the memory."""
    question = world.ledger.sentence(chance.randint(1, 3))
    answer = world.ledger.sentence(chance.randint(1, 3))
    if chance.random() < 0.1:
        secret = f"{TOKEN}{''.join(chance.choices('abcdefghijkmnpqrstuvyz0123456789', k=36))}"
        world.ledger.secrets.append(secret)
        question += f" 我的令牌是 {secret}"
    app = await device.started()
    if app is None:
        return
    device.unanswered[f"key-{step.number}"] = (
        device.owner,
        Exchange(question, answer, idempotency_key=f"key-{step.number}"),
    )
    await _answered(world, device, app, f"key-{step.number}", step.number)


async def again(world: "World", device: Device, step: Step, chance: random.Random) -> None:
    """The app sends again what got no answer."""
    app = await device.started()
    if app is not None and device.unanswered:
        await _answered(world, device, app, chance.choice(sorted(device.unanswered)), step.number)


async def _answered(world: "World", device: Device, app: App, key: str, step: int) -> None:
    said_by, exchange = device.unanswered[key]
    world.ledger.says_anew(exchange.user_message + " " + exchange.ai_response)
    words = tuple(words_of(exchange.user_message + " " + exchange.ai_response))
    fact = next((fact for fact in world.ledger.facts if fact.words == words), None)
    fact = fact or world.ledger.add(Fact(words, device.name, said_by or device.owner, step, must=False))

    async def updating() -> None:
        updated = await app.conversation.update(exchange)
        fact.event_id = updated.event_id

    if await world.within(device, f"update {key}", updating):
        fact.must, fact.step = True, world.at
        device.unanswered.pop(key, None)


async def note(world: "World", device: Device, step: Step, chance: random.Random) -> None:
    """Another program hands an event in; lessons stay on the device."""
    app = await device.started()
    if app is None:
        return
    words, local = world.ledger.sentence(2), chance.random() < 0.4
    fact = Fact(
        tuple(words_of(words)), device.name, device.owner, step.number, stays_here=local, shown=False, must=False
    )
    world.ledger.add(fact)

    async def noting() -> None:
        kind = "lesson_learned" if local else "note_taken"
        draft = app.intake.draft({"type": kind, "payload": {"text": words}})
        recorded = await app.log.record([draft])
        fact.event_id = recorded[0].event.event_id

    fact.must = await world.within(device, "note", noting)
    fact.step = world.at


async def helper(world: "World", device: Device, step: Step, _: random.Random) -> None:
    """A command in a process of its own records beside the running program."""
    process = Process(device.name, device.chance, device.disk, world.tell, slowest=device.slowest)
    words = world.ledger.sentence(2)
    fact = Fact(tuple(words_of(words)), device.name, device.owner, step.number, must=False)
    if device.app is None:
        return
    world.ledger.add(fact)

    async def commanding() -> None:
        CURRENT.set(process)
        cloud = device.cloud_of(process)
        async with open_app(device.settings, Role.GUEST, clock=device.clock, cloud=cloud) as app:
            owner = await app.account.owner_id()
            updated = await app.conversation.update(Exchange(words, "好的"))
            fact.owner, fact.event_id = owner, updated.event_id

    fact.must = await world.within(device, "helper", commanding)
    fact.step = world.at


async def load(world: "World", device: Device, _: Step, chance: random.Random) -> None:
    app = await device.started()
    if app is not None:
        await _loaded(world, device, app, chance.choice([0, 0, 800]))


async def _loaded(world: "World", device: Device, app: App, wait: int) -> Loaded | None:
    """What an AI is told: all that this device itself has said, nothing of others' accounts, nothing forgotten."""
    database = app.log.database.path
    before, certain = device.said(database), _certain(world, device, app)
    found: Loaded | None = None

    async def loading() -> None:
        nonlocal found
        found = await app.conversation.load(wait_ms=wait)

    if not await world.within(device, f"load {wait}", loading) or found is None:
        return None
    told, owner = set(words_of(found.content)), asking.owner_of(device, app)
    if lost := sorted(certain - world.ledger.taken - told):
        world.blame(f"{device.name}: a load does not tell {lost[0]}")
    others = {word for other in found.devices for line in other.lines for word in words_of(line.text)}
    if lost := sorted(others - told):
        world.blame(f"{device.name}: a load does not tell {lost[0]} of another device")
    if forgotten := sorted(told & asking.gone(world, before)):
        world.blame(f"{device.name}: a load tells {forgotten[0]}, which was forgotten")
    owners = world.ledger.owners()
    strange = sorted(word for word in told if owners.get(word) not in {None, owner})
    if strange and owner is not None:
        world.blame(f"{device.name}: a load of {owner} holds {strange[0]} of {owners[strange[0]]}")
    return found


def _certain(world: "World", device: Device, app: App) -> set[str]:
    """The words of what was acknowledged here and stands in this log."""
    rows, owner = device.said(app.log.database.path), asking.owner_of(device, app)
    facts = (
        fact
        for fact in world.ledger.expected()
        if fact.event_id in rows and fact.shown and fact.device == device.name and fact.owner == owner
    )
    return {word for fact in facts for word in fact.words}


async def app_save(world: "World", device: Device, step: Step, chance: random.Random) -> None:
    """The app's settings page saves the whole document."""
    app = await device.started()
    if app is None:
        return
    page, change = device.page, None
    page.whose = device.owner

    async def saving() -> None:
        nonlocal change
        loaded = await app.conversation.load(wait_ms=0)
        page.buffer = loaded.document
        change = page.change(chance, step.number)
        if change is not None:
            world.ledger.taken |= change.taken
            world.ledger.says_anew(page.buffer)
            await app.document.save(page.buffer, loaded.document_sha256, meant=False)

    done = await world.within(device, "app save", saving)
    if change is not None:
        settle = world.ledger.taken_in if done else world.ledger.never_seen
        settle(device.name, change)


# --- the person ---------------------------------------------------------------------------------------------------


async def edit(world: "World", device: Device, step: Step, chance: random.Random) -> None:
    await _edited(world, device, step, chance, fresh=True, how=chance.choice(["in place", "atomic"]))


async def stale(world: "World", device: Device, step: Step, chance: random.Random) -> None:
    """A buffer that was loaded some while ago is changed and saved."""
    await _edited(world, device, step, chance, fresh=False, how=chance.choice(["in place", "atomic"]))


async def torn(world: "World", device: Device, step: Step, chance: random.Random) -> None:
    await _edited(world, device, step, chance, fresh=chance.random() < 0.5, how="torn")


async def pause(world: "World", device: Device, step: Step, chance: random.Random) -> None:
    """A program empties the file and writes it in pieces; in the pauses between them this one looks."""
    if _opened(device, fresh=chance.random() < 0.5):
        change = device.person.change(chance, step.number)
        await _saved(world, device, change, "paused", partial(look, world, device, step, chance))


async def stale_after_forget(world: "World", device: Device, step: Step, chance: random.Random) -> None:
    """Somebody forgets what the editor still shows; then the editor saves it, with a line of its own."""
    app = await device.started()
    if app is None or not _opened(device, fresh=True):
        return
    person, database = device.person, app.log.database.path
    before, shown = device.said(database), set(words_of(device.person.buffer))
    found = sorted(name for name, row in before.items() if row.type == EXCHANGE and row.words and row.words <= shown)
    if not found or not await asking.forgets(world, device, app, event_id := chance.choice(found)):
        return
    if not await world.within(device, "settle", app.settle) or person.saving or person.buffer.count("\n- ") < 1:
        return
    before = device.said(database)
    words = before[event_id].words | asking.gone(world, before) if event_id in before else set()
    await _saved(world, device, person.add(chance, step.number), "in place")
    if await world.within(device, "settle", app.settle) and device.app is app:
        after = device.said(database)
        typed = {word for name in after.keys() - before.keys() for word in after[name].words}
        if back := sorted(words & typed & shown):
            world.blame(f"{device.name}: a stale buffer brings back {back[0]}, which was forgotten")


async def same_line(world: "World", device: Device, step: Step, chance: random.Random) -> None:
    """Two people who have heard of each other change the same line, and neither has heard of the other's change."""
    others = [one for one in world.devices if one is not device and one.owner == device.owner is not None]
    if not others:
        return
    both = device, chance.choice(others)
    for one in (*both, device):
        await sync(world, one, step, chance)
        await look(world, one, step, chance)
    lines = [set(one.person.lines) for one in both if _opened(one, fresh=True)]
    if len(lines) == len(both) and (common := sorted(set.intersection(*lines))):
        line = chance.choice(common)
        for one in both:
            change = one.person.change(chance, step.number, line)
            await _saved(world, one, change, chance.choice(["in place", "atomic"]))


async def _edited(world: "World", device: Device, step: Step, chance: random.Random, *, fresh: bool, how: str) -> None:
    if _opened(device, fresh=fresh):
        await _saved(world, device, device.person.change(chance, step.number), how)


def _opened(device: Device, *, fresh: bool) -> bool:
    """Whether the person has something in the editor that may be changed now."""
    person = device.person
    if "removing" in device.installation():
        return False  # as of `log_out`: what is loaded now would be a buffer of a memory that is gone
    return not person.saving and ((not fresh and bool(person.buffer)) or person.load(device.document_owner()))


async def _saved(
    world: "World",
    device: Device,
    change: Save | None,
    how: str,
    look: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    person = device.person
    if change is not None:
        await person.save(change, device.versions, how, look)
        world.tell(f"{device.name} saved {how} {change.digest[:12]}")


async def _spoiled(world: "World", device: Device, data: bytes | None) -> None:
    path = device.settings.memory_file
    if device.person.saving or not path.exists() or not device.knows(digest_of(path.read_bytes())):
        return  # a version that nobody has seen would be lost by whoever spoils it, not by us
    device.person.judge(device.versions)
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    device.saved(path)
    world.tell(f"{device.name} spoiled the file")


async def empty(world: "World", device: Device, _: Step, __: random.Random) -> None:
    await _spoiled(world, device, b"")


async def delete(world: "World", device: Device, _: Step, __: random.Random) -> None:
    await _spoiled(world, device, None)


async def cut_off(world: "World", device: Device, _: Step, chance: random.Random) -> None:
    path = device.settings.memory_file
    if path.exists():
        text = path.read_bytes().decode("utf-8", "replace")
        await _spoiled(world, device, text[: chance.randrange(1, max(2, len(text) - 40))].encode())


# --- the program --------------------------------------------------------------------------------------------------


async def look(world: "World", device: Device, _: Step, __: random.Random) -> None:
    app = await device.started()
    if app is not None:
        await world.within(device, "settle", app.settle)


async def sync(world: "World", device: Device, _: Step, __: random.Random) -> None:
    app = await device.started()
    if app is not None and app.replicator is not None:
        await world.within(device, "sync", app.replicator.sync_now)


async def wait(world: "World", _: Device, __: Step, chance: random.Random) -> None:
    await asyncio.sleep(chance.choice([5.0, 30.0]))
    world.pass_time(chance.choice([0.0, 120.0, 700.0, 3_700.0]))


async def power_loss(_: "World", device: Device, __: Step, ___: random.Random) -> None:
    device.lose_power()
    await device.reaped()


async def clock(world: "World", device: Device, _: Step, chance: random.Random) -> None:
    device.clock.skew += chance.choice(SKEWS) * chance.choice([1, -1])
    world.tell(f"{device.name} is {device.clock.skew:.0f} s wrong")


async def full(_: "World", device: Device, __: Step, chance: random.Random) -> None:
    """The disk is full for a while, says SQLite itself."""
    _limit_pages(device, FULL_PAGES)
    await asyncio.sleep(chance.uniform(1.0, 20.0))
    _limit_pages(device, NO_LIMIT)


def _limit_pages(device: Device, pages: int) -> None:
    if device.app is not None:
        connection: Any = device.app.log.database._write_engine.raw_connection().driver_connection
        connection.execute(f"pragma max_page_count = {pages}")


# --- the cloud ----------------------------------------------------------------------------------------------------


async def cut(_: "World", device: Device, __: Step, ___: random.Random) -> None:
    device.line.down = True


async def mend(_: "World", device: Device, __: Step, ___: random.Random) -> None:
    device.line.down = False


async def server_down(world: "World", _: Device, __: Step, ___: random.Random) -> None:
    world.server.down = True


async def server_up(world: "World", _: Device, __: Step, ___: random.Random) -> None:
    world.server.down = False


async def expire(world: "World", device: Device, _: Step, __: random.Random) -> None:
    """All access tokens end, and several callers notice it at once."""
    world.server.accounts.expire_tokens()
    app = device.app
    if app is not None:
        asked = (world.within(device, "devices", app.devices.list) for _ in range(CALLERS))
        await asyncio.gather(*asked)


async def end_sessions(world: "World", _: Device, __: Step, ___: random.Random) -> None:
    world.server.accounts.revoke_sessions()


async def restore(world: "World", _: Device, __: Step, chance: random.Random) -> None:
    """The server goes back to a backup of itself."""
    user = chance.choice(world.users)
    world.server.restore(user, max(0, world.server.memories[user].head - chance.randint(1, 8)))


async def replace(world: "World", _: Device, step: Step, chance: random.Random) -> None:
    """The server's log begins anew, with part of what it had or with nothing."""
    user = chance.choice(world.users)
    keep = chance.choice([0, world.server.memories[user].head // 2])
    world.server.restore(user, keep, epoch=f"epoch-{step.number}")


async def poison(world: "World", device: Device, _: Step, chance: random.Random) -> None:
    """The server will never take one of the events that wait."""
    stored = {event.event_id for memory in world.server.memories.values() for event in memory.events}
    question = (
        "select event_id, type, payload from events join deliveries using (position) "
        "where state = 'pending' order by position"
    )
    held = [row for database, _ in device.profiles() for row in device.asked(database, question)]
    waiting = [row for row in held if row[0] not in stored]
    if waiting:
        chosen, kind, payload = chance.choice(waiting)
        world.server.refuses.add(chosen)
        if kind == FORGOTTEN:  # then nobody else hears of that wish
            world.unheard |= set(json.loads(payload)["event_ids"])
        world.tell(f"the server refuses {chosen}")


# --- accounts and installations -------------------------------------------------------------------------------------


async def log_in(world: "World", device: Device, user: int) -> None:
    app = await device.started()
    if app is None:
        return
    contact = contact_of(email=world.email(user))
    await world.within(device, f"log in {user}", lambda: app.entrance.log_in(contact, PASSWORD))
    await device.look_who()  # also after an error: the profile may be his by then


async def come_back(world: "World", device: Device, _: Step, __: random.Random) -> None:
    """Who finds himself logged out logs in again."""
    app, owner = await device.started(), device.owner
    if app is not None and owner is not None and not app.account.is_open:
        await log_in(world, device, world.users.index(owner))


async def switch(world: "World", device: Device, _: Step, chance: random.Random) -> None:
    await log_in(world, device, chance.randrange(len(world.users)))


async def log_out(world: "World", device: Device, _: Step, chance: random.Random) -> None:
    app = await device.started()
    if app is not None:
        remove = chance.random() < 0.3 and "restore" not in world.plan.kinds  # as `history.planned` tells
        device.began_anew, device.emptied = device.began_anew or remove, device.emptied or remove
        owner = device.owner
        if await world.within(device, f"log out {remove}", lambda: app.entrance.log_out(remove=remove)) and remove:
            world.ledger.taken_off(device.name, owner)
            device.person.buffer = ""  # a buffer of a memory that is gone would be a document without a past


async def revoke(world: "World", device: Device, _: Step, chance: random.Random) -> None:
    """One device shuts another out, once in a history."""
    app = await device.started()
    others = [other for other in world.devices if other is not device and other.owner == device.owner]
    revoked = [row for memory in world.server.memories.values() for row in memory.devices.values() if row.revoked_at]
    if app is not None and others and not revoked:
        other = chance.choice(others).settings.device_id
        assert other is not None
        await world.within(device, f"revoke {other}", lambda: app.devices.revoke(other))


async def clone(world: "World", device: Device, _: Step, __: random.Random) -> None:
    """The home folder is copied to another machine, which has another device id."""
    if len(world.devices) >= MOST_DEVICES or not device.owner or device.person.saving:
        return
    if any(owner is None for _, owner in device.profiles()):
        return
    if (typed := device.unseen()) is not None:  # each of the two will take it for what was typed there
        world.ledger.loose |= set(words_of(typed))
    copy = world.add_device("abcde"[len(world.devices)])
    copy.copy_of, copy.began_anew = device.name, True
    device.copied_to(copy.folder)
    (copy.folder / "data" / "sidecar.lock").unlink(missing_ok=True)
    copy.leave_pages_behind()
    world.copied = True
    world.tell(f"{device.name} was copied to {copy.name}")


async def back_up(_: "World", device: Device, step: Step, __: random.Random) -> None:
    """The whole home is copied away, while the program runs."""
    if device.owner and not device.person.saving and all(owner for _, owner in device.profiles()):
        folder = device.folder.with_name(f"{device.name}-backup-{step.number}")
        device.copied_to(folder)
        device.backup = (step.number, folder)


async def roll_back(world: "World", device: Device, _: Step, __: random.Random) -> None:
    """The home is restored from its backup: what came later lives on only elsewhere."""
    if device.backup is None or device.person.saving:
        return
    step, folder = device.backup
    while True:
        device.kill("restored from a backup")
        await device.reaped()
        await asyncio.sleep(A_MOMENT)  # whoever had his answer before notes that now
        if device.life is None:  # else somebody has started it meanwhile, and nobody restores under a living program
            break
    device.person.judge(device.versions)
    held = {
        word
        for memory in world.server.memories.values()
        for event in memory.events
        for word in (event.event_id, *words_of(str(event)))
    }
    world.ledger.went_back(device.name, step, held)
    world.copied = True
    device.emptied = True
    device.restored_from(folder)


# --- the quiet tail -------------------------------------------------------------------------------------------------


async def calm(world: "World", device: Device) -> None:
    """Start, send again what got no answer, and log in as everybody who has a profile here, the last one to stay."""
    await device.reaped()
    for _ in range(3):  # an application that closes just now is opened again
        if await device.started() is not None:
            break
    app = device.app
    if app is None:
        world.blame(f"{device.name} does not start although nothing is wrong")
        return
    _limit_pages(device, NO_LIMIT)
    for key in sorted(device.unanswered):
        await _answered(world, device, app, key, len(world.plan.steps))
    here = [user for _, user in device.profiles() if user]
    default = world.users[world.devices.index(device) % len(world.users)]
    stays = device.owner or default
    for user in [*sorted(set(here) - {stays}), stays]:
        await _as_user(world, device, user)
    device.person.judge(device.versions)


async def _as_user(world: "World", device: Device, user: str) -> None:
    if device.owner != user or not await round_of(world, device):  # somebody else is in, or his session has ended
        await log_in(world, device, world.users.index(user))
        await round_of(world, device)
    if device.waits():  # what came has had its answer: a wish to forget takes lines away
        await round_of(world, device)


async def round_of(world: "World", device: Device) -> bool:
    """Look at the file, answer what a person is asked, and sync; whether that worked.

    Where something came it goes again, as the program's own loop does: the document has changed with it.
    """
    came = 1

    async def syncing(replicator: Replicator) -> None:
        nonlocal came
        came = (await replicator.sync_now()).pulled

    app = await device.started()
    if app is None:
        world.blame(f"{device.name} does not start although nothing is wrong")
        return False
    await world.within(device, "settle", app.settle)
    if world.is_asking:
        await asking.level(world, device, app)
    if app.document.notices & {Notice.MASS_DELETE, Notice.MISSING}:
        await world.within(device, "resolve", lambda: app.document.resolve("restore"))
    while came:
        if app.replicator is None or not await world.within(device, "sync", partial(syncing, app.replicator)):
            return False
        await world.within(device, "settle", app.settle)
        if world.is_asking:
            await asking.level(world, device, app)
    return True


async def views(world: "World", device: Device) -> dict[str, tuple[Any, ...]]:
    """What this device shows of every other one."""
    app = device.app
    if app is None or (loaded := await _loaded(world, device, app, 0)) is None:
        return {}
    return {
        shown.device_id: (shown.name, *((line.date, line.text) for line in shown.lines)) for shown in loaded.devices
    }


ACTS: Final[Mapping[str, Act]] = {
    "say": say,
    "again": again,
    "note": note,
    "helper": helper,
    "load": load,
    "app save": app_save,
    "edit": edit,
    "stale": stale,
    "torn": torn,
    "pause": pause,
    "stale after forget": stale_after_forget,
    "same line": same_line,
    "empty": empty,
    "delete": delete,
    "cut off": cut_off,
    "look": look,
    "sync": sync,
    "wait": wait,
    "power loss": power_loss,
    "clock": clock,
    "full": full,
    "cut": cut,
    "mend": mend,
    "server down": server_down,
    "server up": server_up,
    "expire": expire,
    "end sessions": end_sessions,
    "restore": restore,
    "replace": replace,
    "poison": poison,
    "come back": come_back,
    "switch": switch,
    "log out": log_out,
    "revoke": revoke,
    "clone": clone,
    "back up": back_up,
    "roll back": roll_back,
}
