"""The JSON files of the lessons: edited by hand, read, kept and written again."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.sidecar import Home, Sidecar, wait_until

MESSAGE: Final = "cannot import name 'Depends' from 'fastapi'"
LEARN: Final = (
    *("lessons", "learn", "error", "--lang", "python", "--type", "ImportError", "--message", MESSAGE),
    *("--solution", "延迟导入"),
)
RECORD: Final = {
    "language": "go",
    "error": {"type": "", "message": "undefined: foo"},
    "solution": {"description": "go mod tidy"},
    "odd_field": {"kept": [1, None]},
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.settings["LESSONS__DIR"] = str(tmp_path / "gclm" / "memory")
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "gclm" / "memory"


def records_of(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")


def test_an_edit_of_a_file_is_an_edit_of_the_lesson_and_a_new_file_a_lesson(home: Home, folder: Path) -> None:
    home.run(*LEARN)
    (record,) = records_of(folder / "errors/python.json")
    record["solution"]["description"] = "改用函数内导入"
    record["note"] = {"mine": 1}
    put(folder / "errors/python.json", [record])
    put(folder / "errors/mine.json", [RECORD])
    lessons = {one["record"]["language"]: one for one in home.json("lessons", "list")["lessons"]}
    edited, new = lessons["python"]["record"], lessons["go"]["record"]
    assert (edited["solution"]["description"], edited["note"]) == ("改用函数内导入", {"mine": 1})
    assert RECORD.items() <= new.items()
    assert records_of(folder / "errors/python.json") == [edited]
    assert records_of(folder / "errors/go.json") == [new]
    assert not (folder / "errors/mine.json").exists()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert len(home.json("lessons", "list")["lessons"]) == 2
    assert before == {path: path.read_bytes() for path in before}


def test_an_existing_tree_is_read_once_and_keeps_its_mode_and_its_index(home: Home, folder: Path) -> None:
    put(folder / "errors/go.json", [{"id": "err-20260225-001", **RECORD}])
    put(folder / "index.json", {"version": "1.0", "theirs": True})
    folder.chmod(0o755)
    with Sidecar(home):
        wait_until((folder / ".written.json").exists)
    assert folder.stat().st_mode & 0o777 == 0o755
    (lesson,) = home.json("lessons", "list")["lessons"]
    assert lesson["id"] == "err-20260225-001"
    assert records_of(folder / "errors/go.json") == [lesson["record"]]
    assert records_of(folder / "index.before.json")["theirs"]
    assert records_of(folder / "index.json")["stats"]["totalErrors"] == 1


def test_a_file_that_cannot_be_read_stays_byte_for_byte_and_is_named(home: Home, folder: Path) -> None:
    home.run(*LEARN)
    broken = {"errors/python.json": b'[{"id": "err-1", ', "patterns/api.json": b'[3, {"name": "x"}, "y"]'}
    for name, data in broken.items():
        (folder / name).write_bytes(data)
    home.run(*LEARN)
    home.run("lessons", "list")
    assert broken == {name: (folder / name).read_bytes() for name in broken}
    checks = json.loads(home.run("--json", "doctor", check=False).stdout)["checks"]
    (check,) = [one for one in checks if one["name"] == "lessons"]
    assert check["ok"] is False
    for part in ("errors/python.json is no JSON", "patterns/api.json[0] is no object", "patterns/api.json[2]"):
        assert part in check["found"]
    (folder / "errors/python.json").unlink()
    assert len(home.json("lessons", "list")["lessons"]) == 1
    assert records_of(folder / "errors/python.json")[0]["occurrences"] == 2


def test_the_next_command_finishes_what_a_killed_writer_began(home: Home, folder: Path) -> None:
    home.run(*LEARN)
    manifest = records_of(folder / ".written.json")
    data = (folder / "errors/python.json").read_bytes()
    (folder / "errors/old.json").write_bytes(data)  # the file of a lesson whose language was edited
    digests = {**manifest["digests"], "errors/old.json": manifest["digests"]["errors/python.json"]}
    put(folder / ".written.json", {**manifest, "digests": digests, "position": -1})
    assert len(home.json("lessons", "list")["lessons"]) == 1
    assert not (folder / "errors/old.json").exists()
    assert records_of(folder / ".written.json") == manifest


def test_a_secret_in_a_file_of_another_name_is_not_taken_and_its_file_stays(home: Home, folder: Path) -> None:
    home.run(*LEARN)
    secret = "sk-" + "ant-api03-" + "a1B2c3D4e5F6g7H8i9J0" * 4
    put(folder / "errors/mine.json", [{**RECORD, "token": secret}])
    data = (folder / "errors/mine.json").read_bytes()
    for _ in range(2):
        assert len(home.json("lessons", "list")["lessons"]) == 2
    assert (folder / "errors/mine.json").read_bytes() == data
    assert secret not in (folder / "errors/go.json").read_text("utf-8")


def test_a_forgotten_lesson_does_not_come_back_from_a_file_that_was_edited(home: Home, folder: Path) -> None:
    home.run(*LEARN)
    (record,) = records_of(folder / "errors/python.json")
    put(folder / "errors/python.json", [{**record, "note": "edited and not read yet"}])
    home.run("forget", "--query", "延迟导入", "--yes")
    assert home.json("lessons", "list")["lessons"] == []
    assert not (folder / "errors/python.json").exists()


def test_a_forgotten_lesson_leaves_the_partial_files_of_a_killed_writer_too(home: Home, folder: Path) -> None:
    home.run(*LEARN)
    partial = [folder / ".index.json.0123abcd.tmp", folder / "errors" / ".python.json.0123abcd.tmp"]
    for path in partial:
        path.write_text("延迟导入", "utf-8")
    home.run("forget", "--query", "延迟导入", "--yes")
    assert [path for path in partial if path.exists()] == []


def test_a_lesson_is_recorded_and_erased_beside_files_that_cannot_be_written_now(home: Home, folder: Path) -> None:
    home.run(*LEARN)
    (folder / "patterns").rmdir()
    (folder / "patterns").touch()
    assert "err-" in home.run("lessons", "learn", "error", "--message", "KeyError: b", "--solution", "c").stdout
    assert len(home.json("lessons", "list")["lessons"]) == 2
    cleaned = home.run("lessons", "clean", "--all", "--yes", check=False)
    assert cleaned.returncode == 1
    assert "经验已清除" in cleaned.stderr
    assert MESSAGE in (folder / "errors/python.json").read_text("utf-8")
    (folder / "patterns").unlink()
    assert home.json("lessons", "list")["lessons"] == []
    assert not (folder / "errors/python.json").exists()


def test_the_files_of_a_lost_database_are_lessons_again(home: Home, folder: Path, tmp_path: Path) -> None:
    home.run(*LEARN)
    other = Home(tmp_path / "other")
    other.settings["LESSONS__DIR"] = str(folder)
    assert len(other.json("lessons", "list")["lessons"]) == 1
