"""Scenarios of a project's notes."""

from pathlib import Path
from typing import Any, Final

from tests.crash.environment import CrashEnvironment, CrashingSidecar
from tests.crash.scenarios.erasure_and_archives import wait_for_event_files
from tests.sidecar import Sidecar

ERASED: Final = "蓝鲸计划"  # in scene, choice and evidence of a note: in its title, its row and its text


def project_of(world: CrashEnvironment) -> Path:
    """Below the home, so that the checks of erased words and of leftovers read it."""
    return world.home.folder / "project"


def prepare_project(world: CrashEnvironment) -> None:
    project_of(world).mkdir()


def write_notes(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    """A note, one that takes its place, and a deletion; answered calls are noted."""
    project = str(project_of(world))
    world.notes["written"] = []
    for choice in ("用 PostgreSQL", "用 MySQL"):
        payload = {"scene": "选择数据库时", "principles": [choice], "choice": choice, "evidence": "团队一律这样约定"}
        payload |= {"source": "choice", "confidence": "high"}
        (outcome,) = sidecar.call("notes/remember", projectPath=project, payloads=[payload])["outcomes"]
        if "needsConfirmation" in outcome:
            question = outcome["needsConfirmation"]["questionId"]
            outcome = sidecar.call("notes/answer", projectPath=project, questionId=question, option="a")
        world.notes["written"].append(outcome["noteId"])
    asked = sidecar.call("notes/delete", projectPath=project, id=world.notes["written"][0])
    question = asked["needsConfirmation"]["questionId"]
    sidecar.call("notes/answer", projectPath=project, questionId=question, option="a")
    sidecar.stop()


def check_files_agree(world: CrashEnvironment, sidecar: Sidecar) -> list[dict[str, Any]]:
    """INDEX.md names exactly the notes that are there; the notes."""
    memory = project_of(world) / ".xiaobai" / "memory"
    listed: list[dict[str, Any]] = sidecar.call("notes/list", projectPath=str(project_of(world)))["notes"]
    files = {path.stem for path in (memory / "notes").glob("MEM-*.md")}
    text = (memory / "INDEX.md").read_text("utf-8") if (memory / "INDEX.md").exists() else ""
    rows = {line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| MEM-")}
    assert {note["id"] for note in listed} == files == rows
    assert sidecar.call("notes/doctor", projectPath=str(project_of(world)))["drift"] == []
    return listed


def check_notes(world: CrashEnvironment, sidecar: Sidecar) -> None:
    """An answered call has left its note, in the file and in the search."""
    listed = check_files_agree(world, sidecar)
    files = {note["id"] for note in listed}
    written = world.notes.get("written", [])
    assert set(written[1:]) <= files
    assert not written or written[0] in files or len(written) > 1
    hits = sidecar.call("recall/search", query="数据库", kinds=["note"])["hits"]
    assert len(hits) == sum(note["status"] != "archive" for note in listed)
    world.check_no_leftovers()


def prepare_note_to_erase(world: CrashEnvironment) -> None:
    """Two notes, and a question about the one that will be erased."""
    prepare_project(world)
    with world.sidecar() as sidecar:
        where = {"projectPath": str(project_of(world))}
        for scene, choice, confidence in (
            (f"安排{ERASED}时", f"先写{ERASED}的测试", "high"),
            ("缓存会话时", "用内存", "high"),
            (f"安排{ERASED}时", f"不写{ERASED}的测试", "low"),
        ):
            payload = {"scene": scene, "principles": [choice], "choice": choice, "source": "choice"}
            payload |= {"evidence": f"{scene}团队一律这样约定", "confidence": confidence}
            (outcome,) = sidecar.call("notes/remember", **where, payloads=[payload])["outcomes"]
            assert outcome["status"] == ("written" if confidence == "high" else "needsConfirmation")
        events = sidecar.call("events/read", types=["memory_note_created"])["events"]
        (world.notes["event"],) = (event["event_id"] for event in events if ERASED in str(event["payload"]))
        wait_for_event_files(sidecar)


def erase_note(world: CrashEnvironment, sidecar: CrashingSidecar) -> None:
    request_erasure_of_note(world, sidecar)
    sidecar.wait_until(lambda: not world.files_containing(ERASED))
    wait_for_event_files(sidecar)
    sidecar.stop()


def request_erasure_of_note(world: CrashEnvironment, sidecar: Sidecar) -> None:
    assert sidecar.call("events/forget", eventIds=[world.notes["event"]])["keptFiles"] == []
    world.erased_words.append(ERASED)


def check_note_erased(world: CrashEnvironment, sidecar: Sidecar) -> None:
    """Until the answer the note is there or not, never half; afterwards it is nowhere, and the other note stays."""
    if not world.erased_words:
        check_files_agree(world, sidecar)
        request_erasure_of_note(world, sidecar)
    world.check_erased()
    (note,) = check_files_agree(world, sidecar)
    assert "用内存" in note["title"]
    assert sidecar.call("notes/questions", projectPath=str(project_of(world)))["questions"] == []
    world.check_erased()
    world.check_no_leftovers()
