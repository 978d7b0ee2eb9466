"""The journal of a swap: what a killed one left goes, and another program's save stays."""

from pathlib import Path

import pytest

from sync.system.digests import sha256
from sync.system.swap_journal import SwapJournal


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "INDEX.md"
    path.parent.mkdir()
    path.write_bytes(b"new")
    return path


def killed_write(journal: Path, target: Path, *contents: bytes) -> None:
    """What is on disk after a kill: the journal, and the displaced files."""
    with SwapJournal(journal).record(target, sha256(b"old"), sha256(b"new")):
        kept = journal.read_bytes()
    journal.write_bytes(kept)
    for number, content in enumerate(contents):
        target.with_name(f".INDEX.md.0000000{number}.aside").write_bytes(content)


def test_both_contents_of_a_killed_write_go_and_another_save_stays(tmp_path: Path, target: Path) -> None:
    journal = tmp_path / "notes.pending"
    killed_write(journal, target, b"old", b"new", b"typed in the same moment")
    SwapJournal(journal).recover()
    assert [path.read_bytes() for path in target.parent.glob(".*")] == [b"typed in the same moment"]
    assert (target.read_bytes(), journal.exists()) == (b"new", False)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"target": 1, "sha256": []}', b'{"target": "/x"}', b"\xff"])
def test_a_broken_journal_stops_nothing_and_removes_nothing(tmp_path: Path, target: Path, data: bytes) -> None:
    journal = tmp_path / "notes.pending"
    killed_write(journal, target, b"old")
    journal.write_bytes(data)
    SwapJournal(journal).recover()
    assert len(list(target.parent.glob(".*"))) == 1
    with SwapJournal(journal).record(target, "a"):
        pass
    assert not journal.exists()
