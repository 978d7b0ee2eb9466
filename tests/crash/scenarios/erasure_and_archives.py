"""Scenarios of retention, erasure, daily pages, export and import."""

from collections import Counter
from pathlib import Path
from typing import Any, Final

from sync.archive.container import ArchiveReader
from sync.retention.archives import list_archives, read_archived_events
from tests.acceptance.environment import exchanges, question_counts, wait_for_lines
from tests.crash.environment import CrashEnvironment, CrashingSidecar
from tests.sidecar import Home, Sidecar, wait_until

KEPT: Final = "留下的话"
OLD: Final = "2025-01-02T03:04:05.000Z"
ARCHIVED: Final = "收进档案的往事"
ARCHIVED_AND_FORGOTTEN: Final = "要忘掉的旧闻"
FORGOTTEN: Final = ("按词忘掉的", "按号忘掉的")
SECRET: Final = "BLUEWHALE-77"
SECRETS: Final = '["BLUEWHALE-[0-9]+"]'
DAY: Final = "2026-01-29"
SAID: Final = ("我们来设计记忆功能", "我决定端口用 8080", "就这样")
ENDED: Final = {"type": "session_ended", "session_id": "s1", "event_id": "evt_ended"}
BROUGHT: Final = tuple(f"那边说的 {number}" for number in range(4))


def wait_for_event_files(sidecar: Sidecar) -> None:
    sidecar.call_until("events/files", lambda told: told["position"] == told["head"])


# --- retention ---------------------------------------------------------------------------------------------


def prepare_old_facts(world: CrashEnvironment) -> None:
    with world.sidecar() as sidecar:
        world.send_updates(sidecar, KEPT)
        facts = [
            {"type": "memory_fact", "payload": {"content": text}, "ts": OLD}
            for text in (ARCHIVED, ARCHIVED_AND_FORGOTTEN)
        ]
        world.notes["facts"] = sidecar.call("events/appendBatch", events=facts)["eventIds"]
        wait_for_lines(world.home, KEPT)
        wait_for_event_files(sidecar)


def apply_retention(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    sidecar.call_until("retention/plan", lambda plan: plan["events"] == len(world.notes["facts"]), megabytes=0)
    done = sidecar.call("retention/apply", megabytes=0)
    assert done["forgotten"] == len(world.notes["facts"])
    wait_for_event_files(sidecar)
    sidecar.call("events/forgetMatching", query=ARCHIVED_AND_FORGOTTEN, dryRun=False)
    world.erased_words.append(ARCHIVED_AND_FORGOTTEN)
    sidecar.wait_until(lambda: not world.files_containing(ARCHIVED_AND_FORGOTTEN))
    wait_for_event_files(sidecar)
    sidecar.stop()


def check_archived(world: CrashEnvironment, sidecar: Sidecar) -> None:
    """Events are archived before they are removed; an interrupted run can continue; nothing is half there."""
    fact, other = world.notes["facts"]
    logged = {event["event_id"]: event["payload"] for event in facts_of(sidecar)}
    assert logged[fact] or fact in archived(world), "let go before it was in an archive"
    if not world.erased_words:
        assert logged[other] or other in archived(world) or erasure_is_requested(sidecar, other), (
            "gone, and nobody wished it"
        )
        sidecar.call_until("retention/plan", lambda plan: not plan["held"].get("followed"), megabytes=0)
        sidecar.call("retention/apply", megabytes=0)
        sidecar.call("events/forgetMatching", query=ARCHIVED_AND_FORGOTTEN, dryRun=False)
        world.erased_words.append(ARCHIVED_AND_FORGOTTEN)
    world.check_erased()
    wait_until(lambda: all(event["payload"] == {} for event in facts_of(sidecar)))
    assert set(archived(world)) == {fact}
    world.check(sidecar)


def facts_of(sidecar: Sidecar) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sidecar.call("events/read", types=["memory_fact"])["events"]
    return found


def erasure_is_requested(sidecar: Sidecar, event_id: str) -> bool:
    return event_id in str(sidecar.call("events/read", types=["payload_forgotten"])["events"])


def archived(world: CrashEnvironment) -> list[str]:
    """The ids of archived events; each archive must be readable."""
    unread: dict[str, Any] = {}
    folder = world.home.data / "archive" / world.home.installation["profile"]
    found = [event.event_id for path in list_archives(folder) for event in read_archived_events(path, unread)]
    assert not unread, f"archives that cannot be read: {list(unread)}"
    return found


# --- erasure -----------------------------------------------------------------------------------------------


def prepare_words_everywhere(world: CrashEnvironment) -> None:
    """Put words into the log, messages, memory file, JSONL files, a daily page and a parked document."""
    world.home.settings["PRIVACY__STORE_MESSAGES"] = "true"
    with world.sidecar() as sidecar:
        world.send_updates(sidecar, KEPT)
        # No keys of the app: those stay.
        world.notes["ids"] = {word: sidecar.update(word, f"好，{word}")["eventId"] for word in FORGOTTEN}
        for fact in (FORGOTTEN[0], KEPT):
            sidecar.call("daily/add", summary={"topic": "题目", "facts": [fact]}, date=DAY)
        wait_for_lines(world.home, KEPT, *FORGOTTEN)
        wait_for_event_files(sidecar)
    parked = world.home.database.parent / "parked"
    parked.mkdir(mode=0o700)
    (parked / "0123456789abcdef.md").write_text(world.text, "utf-8")


def erase_words(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    for word in FORGOTTEN:
        erase_word(world, sidecar, word)
    sidecar.wait_until(lambda: not any(map(world.files_containing, FORGOTTEN)))
    wait_for_event_files(sidecar)
    sidecar.stop()


def erase_word(world: CrashEnvironment, sidecar: Sidecar, word: str) -> None:
    """Erase one word by query, the other by its event."""
    if word == FORGOTTEN[0]:
        sidecar.call("events/forgetMatching", query=word, dryRun=False)
    else:
        sidecar.call("events/forget", eventIds=[world.notes["ids"][word]])
    world.erased_words.append(word)


def check_erased(world: CrashEnvironment, sidecar: Sidecar) -> None:
    """An acknowledged erasure is applied without another request; the rest can be requested again."""
    world.check_erased()
    for word in FORGOTTEN:
        if word not in world.erased_words:
            erase_word(world, sidecar, word)
    world.check_erased()
    ids = Counter(event["event_id"] for event in exchanges(sidecar))
    assert ids == Counter([*world.acknowledged_ids.values(), *world.notes["ids"].values()]), (
        "an event itself stays, blank"
    )
    assert daily_page(world.home.data).count(KEPT) == 1
    (parked,) = (world.home.database.parent / "parked").glob("*.md")
    assert KEPT in parked.read_text("utf-8")
    world.check_sound(sidecar)
    world.check_document(sidecar)


# --- stricter redaction rules ------------------------------------------------------------------------------


def prepare_unredacted_secret(world: CrashEnvironment) -> None:
    """Put a secret into the log and into an archive."""
    with world.sidecar() as sidecar:
        world.send_updates(sidecar, KEPT)
        world.notes["told"] = sidecar.update(f"{SECRET} 很急", "好")["eventId"]
        fact = {"type": "memory_fact", "payload": {"content": f"{SECRET} 不急"}, "ts": OLD}
        sidecar.call("events/append", event=fact)
        wait_for_lines(world.home, KEPT, SECRET)
        wait_for_event_files(sidecar)
        sidecar.call_until("retention/plan", lambda plan: plan["events"] == 1, megabytes=0)
        assert sidecar.call("retention/apply", megabytes=0)["forgotten"] == 1
    world.home.settings["REDACTION__PATTERNS"] = SECRETS


def rescan_and_wait(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    rescan(world, sidecar)
    sidecar.wait_until(lambda: not world.files_containing(SECRET))
    wait_for_event_files(sidecar)
    sidecar.stop()


def rescan(world: CrashEnvironment, sidecar: Sidecar) -> None:
    assert sidecar.call("redaction/rescan", apply=True)["applied"]
    world.erased_words.append(SECRET)


def check_corrected(world: CrashEnvironment, sidecar: Sidecar) -> None:
    """After enough rescans the secret is gone and the text around it stays."""
    if not world.erased_words:
        rescan(world, sidecar)
    world.check_erased()
    payloads = {event["event_id"]: event["payload"] for event in exchanges(sidecar)}
    assert set(payloads) == {*world.acknowledged_ids.values(), world.notes["told"]}
    assert "很急" in str(payloads[world.notes["told"]])
    assert "不急" in str(facts_of(sidecar)), "it is back in the log, corrected"
    document = sidecar.load(waitMs=1)["document"]
    assert (document.count("很急"), document.count(KEPT)) == (1, 1)
    sidecar.call_until("memory/load", lambda loaded: loaded["document"] == world.text, waitMs=1)
    world.check_sound(sidecar)
    world.check_no_leftovers()


# --- daily pages -------------------------------------------------------------------------------------------


def daily_page(folder: Path) -> str:
    """The text of all pages of a folder."""
    pages = sorted((folder / ".cursor" / "skills" / "memories" / "daily").glob("*.md"))
    return "\n".join(page.read_text("utf-8") for page in pages)


def prepare_conversation(world: CrashEnvironment) -> None:
    project = world.home.folder / "项目"
    project.mkdir()
    world.notes["project"] = project
    with world.sidecar() as sidecar:
        for text in SAID:
            sidecar.update(text, "好的。", sessionId="s1", projectPath=str(project))


def change_daily_page(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    """Record a session, edit its page, and add and remove another record with a page of its own."""
    project = world.notes["project"]
    sidecar.call("events/append", event=ENDED)
    world.notes["ended"] = True
    sidecar.wait_until(lambda: "8080" in daily_page(project))
    (page,) = (project / ".cursor" / "skills" / "memories" / "daily").glob("*.md")
    beside = project / "editor.new"
    beside.write_text(page.read_text("utf-8").replace("8080", "9090"), "utf-8")
    beside.replace(page)
    world.notes["typed"] = True
    sidecar.call_until("daily/list", lambda told: "9090" in str(told))
    added = sidecar.call("daily/add", summary={"topic": "另一天"}, date=DAY, projectPath=str(project))
    world.notes["added"] = added["record"]["id"]
    sidecar.call("daily/remove", id=world.notes["added"])
    world.notes["removed"] = True
    wait_for_event_files(sidecar)
    sidecar.stop()


def check_daily_page(world: CrashEnvironment, sidecar: Sidecar) -> None:
    """The session is recorded once, as edited; a record exists from its acknowledgement until its removal."""
    if not world.notes.get("ended"):
        sidecar.call("events/append", event=ENDED)
    port = "9090" if world.notes.get("typed") else "8080"
    sidecar.call_until("daily/list", lambda told: port in str(told))
    (kept,) = records_of(sidecar, world, "s1")
    others = [record["id"] for record in records_of(sidecar, world) if record["id"] != kept["id"]]
    assert len(others) <= 1
    if "added" in world.notes:
        assert others == [] if world.notes.get("removed") else others in ([], [world.notes["added"]])
    for record_id in others:
        sidecar.call("daily/remove", id=record_id)
    shown = daily_page(world.notes["project"])
    assert (shown.count("## Session"), shown.count(port)) == (1, str(kept).count(port))
    assert "另一天" not in shown
    world.check_sound(sidecar)
    world.check_no_leftovers()


def records_of(sidecar: Sidecar, world: CrashEnvironment, session_id: str | None = None) -> list[dict[str, Any]]:
    found = sidecar.call("daily/list", project=str(world.notes["project"]))["records"]
    return [record for record in found if session_id in {None, record["sessionId"]}]


# --- import ------------------------------------------------------------------------------------------------


def prepare_archive(world: CrashEnvironment) -> None:
    """Create an archive of another machine."""
    world.notes["archive"] = world.folder / "there.xbm"
    with Sidecar(Home(world.folder / "there", device="device-b")) as sidecar:
        for word in BROUGHT:
            sidecar.update(word)
        sidecar.call("archive/export", path=str(world.notes["archive"]))


def import_and_export(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    world.send_updates(sidecar, KEPT)
    sidecar.call("archive/import", path=str(world.notes["archive"]))
    world.notes["brought in"] = True
    sidecar.wait_until(lambda: all(word in world.text for word in BROUGHT))
    sidecar.call("archive/export", path=str(world.home.folder / "here.xbm"))
    world.notes["exported"] = True
    sidecar.call("events/rebuildFiles")
    wait_for_event_files(sidecar)
    sidecar.stop()


def check_imported(world: CrashEnvironment, sidecar: Sidecar) -> None:
    """All or nothing is imported; a second import changes nothing. An export is whole, or can be repeated."""
    result = sidecar.call("archive/import", path=str(world.notes["archive"]))
    assert (result["found"], result["refused"]) == (len(BROUGHT), 0)
    assert result["recorded"] in ({0} if world.notes.get("brought in") else {0, len(BROUGHT)})
    again = sidecar.update(KEPT, "好", idempotencyKey=KEPT)["eventId"]
    assert again == world.acknowledged_ids.get(KEPT, again)
    assert len(exchanges(sidecar)) == len({*BROUGHT, KEPT})
    document = sidecar.load(waitMs=1)["document"]
    assert question_counts(document) == dict.fromkeys((*BROUGHT, KEPT), 1)
    exported = world.home.folder / "here.xbm"
    assert exported.exists() or not world.notes.get("exported")
    if not exported.exists():
        sidecar.call("archive/export", path=str(exported))
    ArchiveReader.open_verified(exported, None)
    sidecar.call_until("memory/load", lambda loaded: loaded["document"] == world.text, waitMs=1)
    world.check_sound(sidecar)
    world.check_no_leftovers()
