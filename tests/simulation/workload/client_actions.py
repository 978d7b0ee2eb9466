"""Actions of a client: search, daily records, erasure, archives.

Results of a search and of retention are compared with the database at that moment; `checks` does the rest. Nothing is
expected of an erased word that is recorded again from a buffer, a page or a repeated request.
"""

import json
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bridge.api.app_provider import AppProvider, OpenAppProvider
from bridge.api.method_table import Context
from bridge.methods.log import events, retention
from bridge.methods.log import forget as forgetting
from bridge.methods.memory import daily, recall
from sync.app import App
from sync.contract.daily import DailyRecordJson
from sync.contract.recall import HitJson, SearchJson
from sync.log.event_types import PAYLOAD_EXPIRED, PAYLOAD_FORGOTTEN, SESSION_RECORDED
from tests.simulation.checks.expected_state import ExpectedFact, words_of
from tests.simulation.host.device import SimulatedDevice
from tests.simulation.host.device_files import StoredEvent
from tests.simulation.workload.plan import PlanStep

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

Act = Callable[["Simulator", SimulatedDevice, PlanStep, random.Random], Coroutine[Any, Any, None]]

READER: Final = "reader"  # another program that follows the log
TWO_DAYS: Final = 2 * 86_400.0
FACTS: Final = "### 关键信息"  # the heading above a session's bullets on a page
SESSION: Final = "## Session"
LAST_QUESTIONS: Final = 2  # of each sort, on each device
SAYS: Final = frozenset(
    {"exchange_recorded", "note_taken", "lesson_learned", "entry_added", "entry_edited"}
    | {"session_recorded", "session_edited"}
)


def method_context(app: App) -> Context[AppProvider]:
    return Context(OpenAppProvider(app))


def owner_of(device: SimulatedDevice, app: App) -> str | None:
    """The account of the open profile."""
    return dict(device.profiles()).get(app.log.database.path)


# --- search -------------------------------------------------------------------------------------------------------


async def search(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    app = await device.started()
    if app is None:
        return
    words = sorted(_findable_words(world, device.events_of(app.log.database.path)))
    if words:
        await _search_and_check(world, device, app, chance.choice(words))


async def final_searches(world: "Simulator", device: SimulatedDevice) -> None:
    """After all devices have caught up: stored words are found, erased ones are not."""
    app = device.app
    if app is None or not (device.has_index(app.log.database.path) or device is world.devices[0]):
        return
    chance = random.Random(f"{world.plan.seed} last questions {device.name}")
    words = sorted(_findable_words(world, device.events_of(app.log.database.path)))
    gone = sorted(set().union(*world.expected.forgotten.values()))
    for asked in (words, gone):
        for word in chance.sample(asked, min(LAST_QUESTIONS, len(asked))):
            await _search_and_check(world, device, app, word)


async def _search_and_check(world: "Simulator", device: SimulatedDevice, app: App, word: str) -> None:
    database = app.log.database.path
    before = device.events_of(database)
    found: SearchJson | None = None

    async def searching() -> None:
        nonlocal found
        found = await recall.search(app, recall.Search(query=word))

    if not await world.run_on_device(device, f"search {word}", searching) or found is None:
        return
    _check_hit_authors(world, device, found["hits"])
    event_id = _findable_words(world, before).get(word)
    found_words = set(words_of("\n".join(text for hit in found["hits"] for text in (hit["text"], *hit["around"]))))
    found_events = {name for hit in found["hits"] for name in (hit["eventId"], *hit["also"])}
    is_stored = event_id is not None and _findable_words(world, device.events_of(database)).get(word) == event_id
    if is_stored and word not in found_words and event_id not in found_events:
        world.add_defect(f"{device.name}: a search for {word} does not find {event_id}")
    if forgotten := sorted(found_words & erased_words(world, before)):
        world.add_defect(f"{device.name}: a search for {word} finds {forgotten[0]}, which was forgotten")
    owners, owner = world.expected.owners(), owner_of(device, app)
    strange = sorted(word for word in found_words if owners.get(word) not in {None, owner})
    if strange and owner is not None:
        world.add_defect(f"{device.name}: a search of {owner} holds {strange[0]} of {owners[strange[0]]}")


def check_labels(world: "Simulator", device: SimulatedDevice, content: str) -> None:
    """Each line that another device or a program wrote names its author. A copied home knows its original's lines."""
    authors = {word: fact for fact in world.expected.facts for word in fact.words}
    excluded = world.expected.taken | world.expected.claimed[device.name]
    for line in content.splitlines():
        words = words_of(line)
        if words and words[0] in world.expected.imported[device.name] and words[0] in world.expected.changed:
            continue  # the user has made it a line of their own
        facts = [authors[word] for word in words if word in authors and word not in excluded]
        is_foreign = any(fact.device != device.name for fact in facts) and not world.copied
        is_programs = bool(facts) and all(fact.by_program for fact in facts) and device.copy_of is None
        if (is_foreign and "【" not in line) or (is_programs and "工具" not in line and "导入" not in line):
            world.add_defect(f"{device.name}: a load shows {words[0]} without its author")


def _check_hit_authors(world: "Simulator", device: SimulatedDevice, hits: Sequence[HitJson]) -> None:
    facts = {fact.event_id: fact for fact in world.expected.facts if fact.event_id is not None}
    for hit in hits:
        fact = facts.get(hit["eventId"])
        if fact is None or hit["author"] != "user":
            continue
        if fact.by_program or (fact.device != device.name and not world.copied):
            world.add_defect(f"{device.name}: a search shows {fact.words[0]} as the user's own words")


def _findable_words(world: "Simulator", rows: Mapping[str, StoredEvent]) -> dict[str, str]:
    """The words that a search must find, and the event of each."""
    spoken = ("entry_edited", "entry_removed")  # line ids of an exchange begin with its event id
    changed = {str(row.names.get("entry_id")) for row in rows.values() if row.type in spoken}
    touched = {entry_id.rpartition(".")[0] for entry_id in changed}
    touched |= _requested_event_ids(rows, PAYLOAD_FORGOTTEN) | _requested_event_ids(
        rows, PAYLOAD_EXPIRED
    )  # a request counts before it is applied
    found: dict[str, str] = {}
    for fact in world.expected.facts:
        row = rows.get(fact.event_id or "")
        if row is None or fact.event_id is None or fact.event_id in touched or row.names.get("entry_id") in changed:
            continue
        if row.type.startswith("session_") and fact.record is None:
            continue  # changed since, possibly by several actors at once
        found |= dict.fromkeys(row.words.intersection(fact.words), fact.event_id)
    return found


def erased_words(world: "Simulator", rows: Mapping[str, StoredEvent]) -> set[str]:
    """The words that must be absent if these events are known."""
    holding = {name: row for name, row in rows.items() if not row.waits}
    return world.expected.erased_words(_requested_event_ids(holding, PAYLOAD_FORGOTTEN))


# --- daily records ------------------------------------------------------------------------------------------------


async def record_daily(world: "Simulator", device: SimulatedDevice, _: PlanStep, __: random.Random) -> None:
    """The user records a conversation."""
    app = await device.started()
    if app is None:
        return
    topic, said = world.expected.new_sentence(2), world.expected.new_sentence(2)
    words = tuple(words_of(f"{topic} {said}"))
    fact = world.expected.add(
        ExpectedFact(words, device.name, owner_of(device, app), world.at, shown=False, must=False)
    )

    async def adding() -> None:
        done = await daily.add(app, daily.Adding(summary=daily.Summary(topic=topic, facts=(said,))))
        fact.event_id = done["eventId"]
        fact.record = world.expected.record_of_event(done["record"]["id"] if done["record"] else None, done["eventId"])

    fact.must = await world.run_on_device(device, "remember", adding)
    fact.step = world.at


async def edit_page(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """The user edits a day's page: adds a line to a session or removes the session."""
    app = await device.started()
    if app is None or device.page_marker().get("profile") != app.profile.name or not (files := device.page_files()):
        return
    path = chance.choice(files)
    lines = path.read_text("utf-8").split("\n")
    places = [at for at, line in enumerate(lines) if line == FACTS]
    if not places:
        return
    at = chance.choice(places)
    begins = max(number for number, line in enumerate(lines[:at]) if line.startswith(SESSION))
    ends = next((number for number in range(at, len(lines)) if lines[number].startswith(SESSION)), len(lines))
    record = _record_of(world, "\n".join(lines[begins:ends]))
    here = record or _unacknowledged_record(
        world, device.events_of(app.log.database.path), "\n".join(lines[begins:ends])
    )
    if chance.random() < 0.25:
        if here is not None:
            world.expected.changes(here, whole=True)
        await _write_page(world, device, app, path, lines[:begins] + lines[ends:])
        return
    if here is not None:
        world.expected.changes(here)
    words = world.expected.new_sentence(2)
    fact = ExpectedFact(tuple(words_of(words)), device.name, owner_of(device, app), world.at, shown=False, must=False)
    world.expected.add(fact)
    await _write_page(world, device, app, path, [*lines[: at + 1], f"- {words}", *lines[at + 1 :]])
    rows = device.events_of(app.log.database.path)
    fact.event_id = next((name for name, row in rows.items() if row.words.issuperset(fact.words)), None)
    fact.must, fact.step = fact.event_id is not None, world.at  # otherwise the page was not read yet
    device.page_text = "" if fact.must else device.page_text
    fact.record = None if fact.event_id is None else world.expected.record_of_event(record, fact.event_id)


async def _write_page(world: "Simulator", device: SimulatedDevice, app: App, path: Path, lines: list[str]) -> None:
    device.page_text = "\n".join(lines)
    path.write_text(device.page_text, "utf-8")
    device.on_external_save(path)
    await world.run_on_device(device, "pages", app.daily().reconcile)


def _record_of(world: "Simulator", text: str) -> str | None:
    words = set(words_of(text))
    return next((fact.record for fact in world.expected.facts if fact.record and words & set(fact.words)), None)


def _unacknowledged_record(world: "Simulator", rows: Mapping[str, StoredEvent], text: str) -> str | None:
    """The daily record in this text whose creation was not acknowledged yet."""
    waiting = {word for fact in world.expected.facts if fact.event_id is None for word in fact.words}
    words = waiting.intersection(words_of(text))
    record_ids = (
        str(row.names["record_id"]) for row in rows.values() if row.type == SESSION_RECORDED and words & row.words
    )
    return next(record_ids, None)


async def mark_record(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    async def marking(app: App, record: str) -> object:
        world.expected.changes(record)
        return await daily.mark(app, daily.Marking(id=record, mark="important"))

    await _with_record(world, device, chance, "mark", marking)


async def remove_record(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    async def removing(app: App, record: str) -> object:
        world.expected.changes(record, whole=True)
        return await daily.remove(app, daily.One(id=record))

    await _with_record(world, device, chance, "put away", removing)


async def _with_record(
    world: "Simulator",
    device: SimulatedDevice,
    chance: random.Random,
    what: str,
    work: Callable[[App, str], Awaitable[object]],
) -> None:
    app = await device.started()
    if app is None:
        return
    found = await _list_records(world, device, app)
    if found and device.app is app:
        chosen = chance.choice(found)
        world.expected.restate(str(chosen))
        await world.run_on_device(device, what, lambda: work(app, chosen["id"]))


async def _list_records(world: "Simulator", device: SimulatedDevice, app: App) -> list[DailyRecordJson]:
    found: list[DailyRecordJson] = []

    async def listing() -> None:
        found.extend((await daily.list_records(app, daily.Listing()))["records"])

    await world.run_on_device(device, "list", listing)
    return found


async def pages(world: "Simulator", device: SimulatedDevice) -> dict[str, str]:
    """The text of each day on this device."""
    app, found = device.app, dict[str, str]()
    if app is None:
        return found
    for day in sorted({record["date"] for record in await _list_records(world, device, app)}):
        found[day] = (await daily.show(app, daily.Showing(date=day)))["text"]
    return found


# --- erasure and archives -------------------------------------------------------------------------------------------


async def forget(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """Erase one event by its id, or all events with a word."""
    app = await device.started()
    if app is None:
        return
    before = device.events_of(app.log.database.path)
    says = sorted(name for name, row in before.items() if row.type in SAYS and row.words)
    if not says:
        return
    event_id = chance.choice(says)
    word = chance.choice(sorted(before[event_id].words)) if chance.random() < 0.6 else None
    await request_erasure(world, device, app, event_id, word)


async def request_erasure(
    world: "Simulator", device: SimulatedDevice, app: App, event_id: str, word: str | None = None
) -> bool:
    """Erase an event, or all events with a word of it; return whether the call succeeded."""
    before = device.events_of(app.log.database.path)
    before |= {name: row for name, row in _archived_events(device, app).items() if name in before}
    named = {name for name, row in before.items() if word in row.words} if word else {event_id}
    expect_erasures(world, before, named)
    held: list[str] = []

    async def forgetting_it() -> None:
        if word is None:
            held.extend((await events.forget(app, events.Forget(event_ids=[event_id])))["forgotten"])
        else:
            query = forgetting.ForgetMatching(query=word, dry_run=False)
            held.extend((await forgetting.forget_matching(app, query))["forgotten"])

    owner = owner_of(device, app)
    done = await world.run_on_device(device, f"forget {word or event_id}", forgetting_it)
    owner = owner or owner_of(device, app)  # a guest may have logged in meanwhile
    expect_erasures(world, before, held)
    after = device.events_of(app.log.database.path)
    for name in sorted(after.keys() - before.keys()):
        if done and after[name].type == PAYLOAD_FORGOTTEN and set(after[name].names["event_ids"]) & named:
            world.expected.add(ExpectedFact((), device.name, owner, world.at, event_id=name, shown=False))
    return done


def _archived_events(device: SimulatedDevice, app: App) -> dict[str, StoredEvent]:
    """The archived events of the active profile."""
    lines = device.archived().get(app.profile.name, {})
    events_by_id = {name: json.loads(line) for name, line in lines.items()}
    return {
        name: StoredEvent(event["type"], json.dumps(event["payload"], ensure_ascii=False))
        for name, event in events_by_id.items()
    }


def expect_erasures(world: "Simulator", rows: Mapping[str, StoredEvent], named: "set[str] | list[str]") -> None:
    """Note the words of these events, and which of them exist elsewhere or are about to be recorded again."""
    erased = {name: rows[name].words for name in named if name in rows}
    world.expected.expect_erased(erased)
    world.expected.lines |= {str(rows[name].names.get("entry_id")) for name in erased}
    world.expected.lines |= {f"{name}.{end}" for name in erased for end in "qa"}
    for device in world.devices:
        for database, _ in device.profiles():
            for name, row in device.events_of(database).items():
                if name not in erased:
                    world.expected.restate(" ".join(row.words))
                if row.names.get("entry_id") in world.expected.lines:
                    world.expected.taken |= row.words
        world.expected.restate(f"{device.unread_file()}\n{device.page.buffer}\n{device.page_text}")
        world.expected.restate(device.person.buffer if device.person.saving else "")
    for memory in world.server.user_logs.values():
        for event in memory.events:
            world.expected.restate("" if event.event_id in erased else " ".join(words_of(str(event))))


async def archive(world: "Simulator", device: SimulatedDevice, _: PlanStep, chance: random.Random) -> None:
    """Archive old events, but none that another program has not read yet."""
    app = await device.started()
    if app is None:
        return
    database = app.log.database.path
    if chance.random() < 0.5:
        world.pass_time(TWO_DAYS)
        bounds = retention.BoundsParams(days=1)
    else:
        bounds = retention.BoundsParams(megabytes=0)
    newest = device.query(database, "select coalesce(max(position), 0) from events")[0][0]
    reader_offset = device.query(database, "select coalesce(max(position), 0) from watermarks where name = ?", READER)[
        0
    ][0]
    # of two concurrent archive runs the later one reads on, so the earlier one may expire events up to there
    place = chance.randint(min(max(reader_offset, device.read_to.get(database, 0)), newest), newest)
    device.read_to[database] = place
    if (
        not await world.run_on_device(device, "read", lambda: app.log.set_watermark(READER, place))
        or device.app is not app
    ):
        return  # also if the program has read and then died of something else
    expired = _requested_event_ids(device.events_of(database), PAYLOAD_EXPIRED)
    await world.run_on_device(device, "archive", lambda: retention.apply(method_context(app), bounds))
    after = device.events_of(database)
    unread = list(after)[device.read_to.get(database, 0) :]
    if early := sorted((_requested_event_ids(after, PAYLOAD_EXPIRED) - expired).intersection(unread)):
        world.add_defect(f"{device.name}: {early[0]} was archived before a follower had read it")


def _requested_event_ids(rows: Mapping[str, StoredEvent], kind: str) -> set[str]:
    """The events that requests of this type name."""
    return {name for row in rows.values() if row.type == kind for name in row.names.get("event_ids", ())}


async def wait_for_background_work(world: "Simulator", device: SimulatedDevice, app: App) -> None:
    """Let index, pages and archives catch up, if they exist."""
    if device.has_index(app.log.database.path):
        await world.run_on_device(device, "index", app.recall().catch_up)
    if device.pages.is_dir():
        await world.run_on_device(device, "pages", app.daily().reconcile)
    if app.profile.archives_folder.is_dir():
        await world.run_on_device(device, "archives", app.retention().apply_retractions)


ACTS: Final[Mapping[str, Act]] = {
    "search": search,
    "remember": record_daily,
    "edit page": edit_page,
    "mark": mark_record,
    "put away": remove_record,
    "forget": forget,
    "archive": archive,
}
