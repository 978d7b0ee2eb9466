"""The memory folder: what cannot be listed or read is not gone, and links lead no reader out of the project."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sync.notes import folder as folder_module
from sync.notes.folder import TEMPLATE_FILE, NoteFolder, repaired_index
from sync.notes.index_format import index_of
from sync.notes.note_draft import index_row

NOTE = "# {title}\n\n## Meta\n\n- **Id**: {id}\n\n## One-liner\n\n先备份。\n"


@pytest.fixture
def folder(tmp_path: Path) -> NoteFolder:
    (tmp_path / "project" / ".xiaobai" / "memory" / "notes" / "share").mkdir(parents=True)
    opened = NoteFolder(str(tmp_path / "project"))
    for note_id in ("MEM-1", "MEM-2"):
        add(opened, f"{note_id}.md", NOTE.format(title=note_id, id=note_id))
    content = opened.read()
    opened.write_index(content, repaired_index(content)[0])
    return opened


def add(folder: NoteFolder, name: str, text: str) -> Path:
    path = folder.root / "memory" / "notes" / name
    path.write_text(text, "utf-8")
    return path


def test_a_folder_that_cannot_be_listed_removes_no_row(folder: NoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    content = folder.read()
    assert content.notes == {}
    assert not content.is_gone("MEM-1")
    assert repaired_index(content)[1] == []
    assert any("cannot be listed" in warning for warning in content.warnings)


def test_a_cut_listing_keeps_own_notes_and_says_so(folder: NoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    add(folder, "share/A.md", NOTE.format(title="A", id="A"))
    monkeypatch.setattr(folder_module, "MAX_NOTES", 2)
    content = folder.read()
    assert list(content.notes) == ["MEM-1", "MEM-2"]
    assert not content.is_gone("A")
    assert any("only the first 2" in warning for warning in content.warnings)


def test_a_deleted_note_is_gone_while_one_whose_id_contains_its_id_is_unreadable(folder: NoteFolder) -> None:
    (folder.root / "memory" / "notes" / "MEM-1.md").unlink()
    (folder.root / "memory" / "notes" / "MEM-2.md").write_bytes(b"\xff")
    (folder.root / "memory" / "notes" / "MEM-10.md").write_bytes(b"\xff")
    content = folder.read()
    assert (content.is_gone("MEM-1"), content.is_gone("MEM-2"), content.is_gone("MEM-10")) == (True, False, False)
    assert repaired_index(content)[1] == ["MEM-1: its file is gone, so its row was removed"]


def test_a_link_out_of_the_project_is_not_read(folder: NoteFolder, tmp_path: Path) -> None:
    outside = tmp_path / "secret.md"
    outside.write_text(NOTE.format(title="secret", id="MEM-2"), "utf-8")
    path = folder.root / "memory" / "notes" / "MEM-2.md"
    path.unlink()
    path.symlink_to(outside)
    content = folder.read()
    assert list(content.notes) == ["MEM-1"]
    assert not content.is_gone("MEM-2")
    assert any("link out of the project" in warning for warning in content.warnings)


def test_a_folder_that_is_a_link_out_of_the_project_is_neither_read_nor_cleaned(tmp_path: Path) -> None:
    outside, project = tmp_path / "outside", tmp_path / "project"
    (outside / "memory" / "notes").mkdir(parents=True)
    project.mkdir()
    (project / ".xiaobai").symlink_to(outside)
    leftover = outside / "memory" / "notes" / ".x.md.0123abcd.tmp"
    leftover.write_text("", "utf-8")
    folder = NoteFolder(str(project))
    add(folder, "A.md", NOTE.format(title="A", id="A"))
    folder.remove_leftovers(before=float("inf"))
    assert leftover.exists()
    content = folder.read()
    assert content.notes == {}
    assert any("link out of the project" in warning for warning in content.warnings)


def test_a_note_without_an_id_takes_that_of_its_row_with_its_cells(folder: NoteFolder) -> None:
    index = folder.root / "memory" / "INDEX.md"
    index.write_text(
        "| Id | File | Status | Owner |\n|---|---|---|---|\n| K-7 | memory/notes/plain.md | archive | Li |\n", "utf-8"
    )
    add(folder, "plain.md", "# Plain\n")
    note = folder.read().notes["K-7"]
    assert (note.file, note.note.status) == ("memory/notes/plain.md", "archive")


def test_a_changed_id_renames_the_row_and_keeps_its_cells(folder: NoteFolder) -> None:
    index = folder.root / "memory" / "INDEX.md"
    index.write_text("| Id | File | Owner |\n|---|---|---|\n| MEM-1 | memory/notes/MEM-1.md | Li |\n", "utf-8")
    add(folder, "MEM-1.md", NOTE.format(title="new", id="MEM-9"))
    repaired, changes = repaired_index(folder.read())
    assert (repaired.rows["MEM-9"]["Owner"], "MEM-1" in repaired.rows) == ("Li", False)
    assert any("renamed" in change for change in changes)


def test_a_row_whose_file_exists_elsewhere_stays(folder: NoteFolder) -> None:
    (folder.root / "memory" / "other.md").write_text("# Other\n", "utf-8")
    index = folder.root / "memory" / "INDEX.md"
    index.write_text(index.read_text("utf-8") + "| O" + " |" * 11 + " | memory/other.md |\n", "utf-8")
    assert repaired_index(folder.read())[1] == []


def test_an_id_that_no_command_takes_is_refused_and_names_the_file(folder: NoteFolder) -> None:
    add(folder, "long.md", NOTE.format(title="long", id="x" * 70_000))
    content = folder.read()
    assert list(content.notes) == ["MEM-1", "MEM-2"]
    assert any("long.md has an Id of more than" in warning for warning in content.warnings)
    assert all(len(warning) < 200 for warning in content.warnings)


def test_processes_that_create_one_folder_at_once_are_not_refused(folder: NoteFolder) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            (folder.root / TEMPLATE_FILE).unlink(missing_ok=True)
            assert list(pool.map(folder.create, [f"{number}"] * 8)) == [None] * 8
            assert (folder.root / TEMPLATE_FILE).read_text() == f"{number}"


def test_rows_of_many_notes_that_are_gone_are_removed_together(folder: NoteFolder) -> None:
    rows = "".join(f"| MEM-x{number} | memory/notes/x{number}.md |\n" for number in range(8_000))
    (folder.root / "memory" / "INDEX.md").write_text(f"| Id | File |\n|---|---|\n{rows}", "utf-8")
    repaired, changes = repaired_index(folder.read())
    assert set(repaired.rows) == {"MEM-1", "MEM-2"}
    assert len(changes) == 8_002


def test_a_taken_note_wins_its_id_and_only_its_own_bytes_decide_its_state(folder: NoteFolder) -> None:
    own = folder.read().notes["MEM-1"]
    old = add(folder, "AA.md", NOTE.format(title="旧", id="MEM-1"))
    old_text = folder.read().notes["MEM-1"].sha256
    stolen = add(folder, "A.md", NOTE.format(title="冒充", id="MEM-1"))
    for taken in ({own.sha256: "MEM-1"}, {own.sha256: "MEM-1", old_text: ""}):
        assert folder.read(taken).notes["MEM-1"] == own
    assert folder.read().notes["MEM-1"].file == "memory/notes/A.md"
    old.unlink()
    stolen.unlink()

    index = folder.root / "memory" / "INDEX.md"
    rows = [{**index_row(own), "Status": "archive"}, {**index_row(folder.read().notes["MEM-2"]), "Status": "archive"}]
    index.write_text(index_of(rows).render(), "utf-8")
    notes = folder.read({own.sha256: "MEM-1"}).notes
    assert (notes["MEM-1"].note.status, notes["MEM-2"].note.status) == (own.note.status, "archive")


def test_a_taken_note_without_an_id_keeps_the_one_that_it_had(folder: NoteFolder) -> None:
    add(folder, "own.md", "# 我的\n\n先备份。\n")
    own = folder.read().notes["own"]
    (folder.root / "memory" / "INDEX.md").write_text(index_of([{**index_row(own), "Id": "MEM-9"}]).render(), "utf-8")
    assert "own" in folder.read({own.sha256: "own"}).notes
    assert "MEM-9" in folder.read().notes
