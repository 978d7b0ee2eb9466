"""RESULTS.md of the long runs: what an interruption leaves is true, and what a person wrote there stays."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests import run_report
from tests.run_report import PartResult, RunReport

NOON = datetime(2026, 2, 2, 12, tzinfo=UTC)
PARTS = ("killed: one", "killed: other", "torn logs")


@pytest.fixture(autouse=True)
def _at_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_report, "commit", lambda: "0123456789")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "RESULTS.md"


def row(part: str, *complaints: str, good: int = 30) -> PartResult:
    outcomes = {"killed": good} | ({"failed": len(complaints)} if complaints else {})
    return PartResult.of(part, outcomes, complaints, seed=7, seconds=12.3, when=NOON)


def test_each_part_is_recorded_as_it_ends_and_missing_parts_are_named(file: Path) -> None:
    told = RunReport(file, "Runs", PARTS)
    told.write(row("torn logs"))
    told.write(row("killed: one"))
    text = file.read_text("utf-8")
    assert "not yet run in full: killed (1 of its parts)" in text
    assert text.index("| killed: one |") < text.index("| torn logs |")
    assert "| torn logs | 30 | 0 | 30 killed | 7 | 12 | 2026-02-02 12:00 | 0123456789 |" in text


def test_the_parts_of_a_kind_are_summed_and_bound_where_none_failed(file: Path) -> None:
    told = RunReport(file, "Runs", PARTS)
    for part in PARTS[:2]:
        told.write(row(part, good=100))
    assert "- killed: 200 trials, 0 failed, at most 3/N = 1.50%" in file.read_text("utf-8")
    told.write(row(PARTS[0], "point 3: lost | a word\nand more"))
    text = file.read_text("utf-8")
    assert "- killed: 131 trials, 1 failed\n" in text
    assert "1 failed, 30 killed; point 3: lost / a word and more |" in text


def test_going_on_leaves_out_what_went_well_with_the_same_files_only(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = RunReport(file, "Runs", PARTS)
    told.write(row(PARTS[0]))
    told.write(row(PARTS[1], "lost"))
    assert told.finished_parts() == {PARTS[0]}
    monkeypatch.setattr(run_report, "commit", lambda: "0123456789+")
    told.write(row(PARTS[2]))
    assert told.finished_parts() == set()


def test_what_a_person_wrote_below_stays(file: Path) -> None:
    file.write_text("# Old\n\nnothing yet\n\n## Found\n\n- a lost word\n", "utf-8")
    told = RunReport(file, "Runs", PARTS)
    told.write(row(PARTS[0]))
    told.write(row(PARTS[0]))
    text = file.read_text("utf-8")
    assert text.startswith("# Runs\n")
    assert text.endswith("|\n\n## Found\n\n- a lost word\n")
    assert "nothing yet" not in text
