"""Scenarios without a cloud."""

import sqlite3
from contextlib import closing
from typing import Final

from sync.db.migrate import known
from sync.vault import mark
from tests.acceptance.world import rows, settled
from tests.crash.child import NEXT_SCHEMA
from tests.crash.world import Doomed, World
from tests.integration.document_desk import AppCache
from tests.integration.test_salvage import PAGE, leaves, overwrite, root_of
from tests.sidecar import Sidecar, eventually

MANY: Final = 120  # events: several pages of them


def nothing(_: World) -> None:
    """A machine that never saw us."""


def first_words(world: World, sidecar: Doomed) -> None:
    for word in ("最初的话", "第二句"):
        world.say(sidecar, word)
        sidecar.eventually(lambda word=word: word in world.text)  # type: ignore[misc]
    sidecar.stop()


def some_memory(world: World) -> None:
    with world.sidecar() as sidecar:
        world.say(sidecar, "早先一", "早先二", "早先三")


def stream(world: World, sidecar: Doomed) -> None:
    for number in range(4):
        world.say(sidecar, *(f"问题 {number}.{place}" for place in range(3)))
    sidecar.eventually(lambda: "问题 3.2" in world.text)
    sidecar.stop()


def hand_edits(world: World, sidecar: Doomed) -> None:
    for line in ("每天早起", "少喝咖啡"):
        world.type(line)
        sidecar.until("events/read", lambda page, line=line: line in str(page), types=["entry_added"])
    sidecar.stop()


def race(world: World, sidecar: Doomed) -> None:
    for number in range(3):
        world.type(f"手写 {number}")
        world.say(sidecar, f"同时 {number}")
    sidecar.eventually(lambda: "同时 2" in world.text and "手写 2" in world.text)
    sidecar.stop()


def settings_page(world: World, sidecar: Doomed) -> None:
    loaded = sidecar.load(waitMs=0)
    world.notes["lines"] = ["- 设置页写的"]
    text = loaded["document"].replace("### 工作习惯\n", "### 工作习惯\n- 设置页写的\n", 1)
    sidecar.call("memory/save", document=text, baseSha256=loaded["documentSha256"])
    sidecar.call("memory/restore", sha256=loaded["documentSha256"])
    sidecar.eventually(lambda: "设置页写的" not in world.text)
    world.file.write_text("\n".join(world.text.splitlines()[:6]) + "\n", "utf-8")
    sidecar.until("sync/status", lambda told: "suspicious_mass_delete" in told["document"]["warnings"])
    sidecar.call("memory/resolve", answer="restore")
    sidecar.stop()


def check_settings_page(world: World, sidecar: Sidecar) -> None:
    """Saved or not yet, taken back or not yet: the words are there; a file that lost its lines only waits."""
    settled(sidecar)

    def is_asked() -> bool:
        return "suspicious_mass_delete" in sidecar.call("sync/status")["document"]["warnings"]

    # a file without its end may be one that is being written
    eventually(lambda: is_asked() or "最后更新" in world.text or not world.file.exists())
    if is_asked():
        sidecar.call("memory/resolve", answer="restore")
    written = sidecar.load(waitMs=0)["document"].splitlines().count("- 设置页写的")
    assert written <= 1
    world.check(sidecar)


def an_app_cache(world: World) -> None:
    path = world.folder / "app.db"
    world.home.settings |= {"APP_DB": str(path), "APP_DB_WRITE_BACK": "true"}
    world.notes["cache"] = AppCache(path)
    some_memory(world)


def with_the_cache(world: World, sidecar: Doomed) -> None:
    cache: AppCache = world.notes["cache"]
    sidecar.eventually(lambda: cache.rows and cache.rows[0][1] == world.text)
    world.say(sidecar, "写进缓存")
    sidecar.eventually(lambda: "写进缓存" in str(cache.rows))
    content = str(cache.rows[0][1])
    cache.save(content.replace("### 工作习惯\n", "### 工作习惯\n- 应用写的\n", 1))
    world.typed.append("应用写的")
    sidecar.eventually(lambda: "应用写的" in world.text)
    sidecar.stop()


def check_cache(world: World, sidecar: Sidecar) -> None:
    cache: AppCache = world.notes["cache"]
    if world.typed:
        sidecar.until("memory/load", lambda loaded: "应用写的" in loaded["document"], waitMs=0)
    world.check(sidecar)
    eventually(lambda: str(cache.rows[0][1]) == world.text)
    assert len(cache.rows) == 1


def an_older_database(world: World) -> None:
    """Of the program as it is; the one that runs next knows one schema more."""
    world.ahead = False
    some_memory(world)
    world.ahead = True


def check_upgraded(world: World, sidecar: Sidecar) -> None:
    world.check(sidecar)
    assert rows(world.home, "pragma user_version") == [(known()[-1].version + 1,)]
    made = rows(world.home, "select name from sqlite_master where name in ('plans', 'events_by_heard_at')")
    assert len(made) == sum(statement.startswith("create") for statement in NEXT_SCHEMA)
    rows(world.home, "select heard_at from events")


def a_damaged_database(world: World) -> None:
    """One page of the log is gone; what is told by then is what can still be read."""
    with world.sidecar() as sidecar:
        world.say(sidecar, *(f"以前 {number} " + "很久以前的一句话" * 5 for number in range(MANY)))
    path = world.home.database
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    before = {row[0]: row[1] for row in rows(world.home, "select position, event_id from events")}
    damaged = list(leaves(path, root_of(path, "events")))[3]
    overwrite(path, (damaged - 1) * PAGE, b"\xa5" * PAGE)
    with closing(sqlite3.connect(path)) as connection:
        readable = {position for position in before if _can_be_read(connection, position)}
    assert 0 < len(readable) < len(before)
    world.notes["readable"] = {before[position] for position in readable}
    world.notes["damaged"] = path.read_bytes()
    world.notes["before"] = set(world.acknowledged.values())
    world.acknowledged = {}
    world.notes["words"] = dict(world.sent)
    world.sent = {}


def _can_be_read(connection: sqlite3.Connection, position: int) -> bool:
    try:
        return connection.execute("select payload from events where position = ?", [position]).fetchone() is not None
    except sqlite3.DatabaseError:
        return False


def check_salvaged(world: World, sidecar: Sidecar) -> None:
    survived = {event["event_id"] for event in _all_exchanges(sidecar)}
    assert world.notes["readable"] <= survived, "what could be read is there"
    assert set(world.acknowledged.values()) <= survived, "what was acknowledged afterwards is there"
    world.check_sound(sidecar)
    kept = world.home.database.parent.glob("memory.db.damaged-*Z")
    assert world.notes["damaged"] in [path.read_bytes() for path in kept], "the damaged file is kept as it was"
    pending = rows(world.home, "select count(*) from deliveries where state = 'pending'")
    assert pending == [(len(survived),)], "everything waits to be sent"
    for word in world.sent:
        answered = sidecar.update(word, "好", idempotencyKey=word)["eventId"]
        assert answered == world.acknowledged.get(word, answered)
    eventually(lambda: all(word in world.text for word in world.sent), within=20)
    world.check_tidy()


def a_plain_database_to_encrypt(world: World) -> None:
    some_memory(world)
    world.home.settings["PRIVACY__ENCRYPT_AT_REST"] = "true"


def an_encrypted_database_to_decrypt(world: World) -> None:
    a_plain_database_to_encrypt(world)
    with world.sidecar() as sidecar:
        world.say(sidecar, "加密后说的")
    assert not plain_words(world)
    world.home.settings["PRIVACY__ENCRYPT_AT_REST"] = "false"


def check_encrypted(world: World, sidecar: Sidecar) -> None:
    world.check(sidecar)
    assert not plain_words(world), "words stand on the disk as they were said"


def check_decrypted(world: World, sidecar: Sidecar) -> None:
    world.check(sidecar)
    with closing(sqlite3.connect(world.home.database)) as connection:
        assert connection.execute("select count(*) from events").fetchone()[0] >= len(world.sent)
    assert not mark.is_set(world.home.database)


def plain_words(world: World) -> set[str]:
    """What was said and can be read in the database's files by anybody."""
    files = [path.read_bytes() for path in world.home.database.parent.glob("memory.db*")]
    return {word for word in world.sent for data in files if word.encode() in data}


def _all_exchanges(sidecar: Sidecar) -> list[dict[str, str]]:
    found: list[dict[str, str]] = sidecar.call("events/read", types=["exchange_recorded"], limit=10 * MANY)["events"]
    return found
