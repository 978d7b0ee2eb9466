"""Scenarios without a cloud."""

import sqlite3
from contextlib import closing
from typing import Final

from sync.db.migrate import known_migrations
from sync.encryption import encrypted_marker
from tests.acceptance.environment import local_rows, wait_until_reconciled
from tests.crash.crash_process import NEXT_SCHEMA
from tests.crash.environment import CrashEnvironment, CrashingSidecar
from tests.integration.db.rebuild.test_salvage import PAGE, leaf_pages, overwrite, root_page_of
from tests.integration.document.harness import FakeAppCache
from tests.sidecar import Sidecar, wait_until

MANY: Final = 120  # events: several pages of them


def prepare_nothing(_: CrashEnvironment) -> None:
    """A machine that never saw us."""


def send_first_updates(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    for word in ("最初的话", "第二句"):
        world.send_updates(sidecar, word)
        sidecar.wait_until(lambda word=word: word in world.text)  # type: ignore[misc]
    sidecar.stop()


def prepare_some_memory(world: CrashEnvironment) -> None:
    with world.sidecar() as sidecar:
        world.send_updates(sidecar, "早先一", "早先二", "早先三")


def stream_updates(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    for number in range(4):
        world.send_updates(sidecar, *(f"问题 {number}.{place}" for place in range(3)))
    sidecar.wait_until(lambda: "问题 3.2" in world.text)
    sidecar.stop()


def manual_edits(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    for line in ("每天早起", "少喝咖啡"):
        world.type_line(line)
        sidecar.call_until("events/read", lambda page, line=line: line in str(page), types=["entry_added"])
    sidecar.stop()


def race_updates_and_edits(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    for number in range(3):
        world.type_line(f"手写 {number}")
        world.send_updates(sidecar, f"同时 {number}")
    sidecar.wait_until(lambda: "同时 2" in world.text and "手写 2" in world.text)
    sidecar.stop()


def save_settings_page(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    loaded = sidecar.load(waitMs=1)
    world.notes["lines"] = ["- 设置页写的"]
    text = loaded["document"].replace("### 工作习惯\n", "### 工作习惯\n- 设置页写的\n", 1)
    sidecar.call("memory/save", document=text, baseSha256=loaded["documentSha256"])
    sidecar.call("memory/restore", sha256=loaded["documentSha256"])
    sidecar.wait_until(lambda: "设置页写的" not in world.text)
    world.file.write_text("\n".join(world.text.splitlines()[:6]) + "\n", "utf-8")
    sidecar.call_until("sync/status", lambda told: "suspicious_mass_delete" in told["document"]["warnings"])
    sidecar.call("memory/resolve", answer="restore")
    sidecar.stop()


def check_settings_page(world: CrashEnvironment, sidecar: Sidecar) -> None:
    """Saved or not yet, taken back or not yet: the words are there; a file that lost its lines only waits."""
    wait_until_reconciled(sidecar)

    def is_asked() -> bool:
        return "suspicious_mass_delete" in sidecar.call("sync/status")["document"]["warnings"]

    # a file without its end may be one that is being written
    wait_until(lambda: is_asked() or "最后更新" in world.text or not world.file.exists())
    if is_asked():
        sidecar.call("memory/resolve", answer="restore")
    written = sidecar.load(waitMs=1)["document"].splitlines().count("- 设置页写的")
    assert written <= 1
    world.check(sidecar)


def prepare_app_cache(world: CrashEnvironment) -> None:
    path = world.folder / "app.db"
    world.home.settings |= {"APP_DB": str(path), "APP_DB_WRITE_BACK": "true"}
    world.notes["cache"] = FakeAppCache(path)
    prepare_some_memory(world)


def update_with_app_cache(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    cache: FakeAppCache = world.notes["cache"]
    sidecar.wait_until(lambda: cache.rows and cache.rows[0][1] == world.text)
    world.send_updates(sidecar, "写进缓存")
    sidecar.wait_until(lambda: "写进缓存" in str(cache.rows))
    content = str(cache.rows[0][1])
    cache.save(content.replace("### 工作习惯\n", "### 工作习惯\n- 应用写的\n", 1))
    world.typed_lines.append("应用写的")
    sidecar.wait_until(lambda: "应用写的" in world.text)
    sidecar.stop()


def check_cache(world: CrashEnvironment, sidecar: Sidecar) -> None:
    cache: FakeAppCache = world.notes["cache"]
    if world.typed_lines:
        sidecar.call_until("memory/load", lambda loaded: "应用写的" in loaded["document"], waitMs=1)
    world.check(sidecar)
    wait_until(lambda: str(cache.rows[0][1]) == world.text)
    assert len(cache.rows) == 1


def prepare_older_database(world: CrashEnvironment) -> None:
    """Of the program as it is; the one that runs next knows one schema more."""
    world.newer_schema = False
    prepare_some_memory(world)
    world.newer_schema = True


def check_upgraded(world: CrashEnvironment, sidecar: Sidecar) -> None:
    world.check(sidecar)
    assert local_rows(world.home, "pragma user_version") == [(known_migrations()[-1].version + 1,)]
    made = local_rows(world.home, "select name from sqlite_master where name in ('plans', 'events_by_heard_at')")
    assert len(made) == sum(statement.startswith("create") for statement in NEXT_SCHEMA)
    local_rows(world.home, "select heard_at from events")


def prepare_corrupt_database(world: CrashEnvironment) -> None:
    """One page of the log is gone; what is told by then is what can still be read."""
    with world.sidecar() as sidecar:
        world.send_updates(sidecar, *(f"以前 {number} " + "很久以前的一句话" * 5 for number in range(MANY)))
    path = world.home.database
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    before = {row[0]: row[1] for row in local_rows(world.home, "select position, event_id from events")}
    damaged = list(leaf_pages(path, root_page_of(path, "events")))[3]
    overwrite(path, (damaged - 1) * PAGE, b"\xa5" * PAGE)
    with closing(sqlite3.connect(path)) as connection:
        readable = {position for position in before if _can_be_read(connection, position)}
    assert 0 < len(readable) < len(before)
    world.notes["readable"] = {before[position] for position in readable}
    world.notes["damaged"] = path.read_bytes()
    world.notes["before"] = set(world.acknowledged_ids.values())
    world.acknowledged_ids = {}
    world.notes["words"] = dict(world.sent_updates)
    world.sent_updates = {}


def _can_be_read(connection: sqlite3.Connection, position: int) -> bool:
    try:
        return connection.execute("select payload from events where position = ?", [position]).fetchone() is not None
    except sqlite3.DatabaseError:
        return False


def check_salvaged(world: CrashEnvironment, sidecar: Sidecar) -> None:
    survived = {event["event_id"] for event in _all_exchanges(sidecar)}
    assert world.notes["readable"] <= survived, "what could be read is there"
    assert set(world.acknowledged_ids.values()) <= survived, "what was acknowledged afterwards is there"
    world.check_sound(sidecar)
    damaged_copies = world.home.database.parent.glob("memory.db.damaged-*Z")
    assert world.notes["damaged"] in [path.read_bytes() for path in damaged_copies], (
        "the damaged file is kept as it was"
    )
    waiting = "select event_id from events join deliveries using (position) where state = 'pending'"
    not_waiting = survived - {row[0] for row in local_rows(world.home, waiting)}
    assert not_waiting == set(), "everything waits to be sent"
    for word in world.sent_updates:
        answered = sidecar.update(word, "好", idempotencyKey=word)["eventId"]
        assert answered == world.acknowledged_ids.get(word, answered)
    wait_until(lambda: all(word in world.text for word in world.sent_updates), timeout=20)
    world.check_no_leftovers()


def prepare_encryption(world: CrashEnvironment) -> None:
    prepare_some_memory(world)
    world.home.settings["PRIVACY__ENCRYPT_AT_REST"] = "true"


def prepare_decryption(world: CrashEnvironment) -> None:
    prepare_encryption(world)
    with world.sidecar() as sidecar:
        world.send_updates(sidecar, "加密后说的")
    assert not plaintext_occurrences(world)
    world.home.settings["PRIVACY__ENCRYPT_AT_REST"] = "false"


def check_encrypted(world: CrashEnvironment, sidecar: Sidecar) -> None:
    world.check(sidecar)
    assert not plaintext_occurrences(world), "words stand on the disk as they were said"


def check_decrypted(world: CrashEnvironment, sidecar: Sidecar) -> None:
    world.check(sidecar)
    with closing(sqlite3.connect(world.home.database)) as connection:
        assert connection.execute("select count(*) from events").fetchone()[0] >= len(world.sent_updates)
    assert not encrypted_marker.is_marked(world.home.database)


def plaintext_occurrences(world: CrashEnvironment) -> set[str]:
    """What was said and can be read in the database's files by anybody."""
    files = [path.read_bytes() for path in world.home.database.parent.glob("memory.db*")]
    return {word for word in world.sent_updates for data in files if word.encode() in data}


def _all_exchanges(sidecar: Sidecar) -> list[dict[str, str]]:
    found: list[dict[str, str]] = sidecar.call("events/read", types=["exchange_recorded"], limit=10 * MANY)["events"]
    return found
