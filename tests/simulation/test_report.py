"""RESULTS.md and docs/guarantees.md hold the stored results."""

import json
from dataclasses import asdict, replace
from pathlib import Path

from tests.simulation.report import BEGIN, CHAPTER, RESULTS, SimulationReport, page, part, with_part
from tests.simulation.seed_run import OTHERWISE, SeedResult, sort_of_defect
from tests.simulation.workload.plan import (
    ASKED,
    ASKING,
    AWAY,
    BESIDES,
    FORGING,
    IMPORTING,
    KINDS,
    LAN,
    PAIRING,
    PROGRAMS,
    STATING,
    TEACHING,
)

NEW = {
    AWAY,
    FORGING,
    IMPORTING,
    LAN,
    PAIRING,
    PROGRAMS,
    STATING,
    TEACHING,
}  # kinds since the last `make sim RECORD=1`, which asks for an empty set


def result(seed: int, *defects: str, lost: int = 0) -> SeedResult:
    alone = {"no fault": (10, 0), "torn": (10, lost)}
    return SeedResult(seed, f"hash {seed}", defects, 5, 7, ("torn",), (10, lost), alone)


def test_results_and_chapter_are_rendered_from_the_figures() -> None:
    record = SimulationReport.read()
    assert RESULTS.read_text("utf-8") == page(record)
    chapter = CHAPTER.read_text("utf-8")
    assert with_part(chapter, part(record)) == chapter
    assert [fault.kind for fault in record.faults[1:]] == [kind for kind in (*KINDS, *BESIDES) if kind not in NEW]


def test_a_manual_edit_of_the_chapter_is_noticed() -> None:
    chapter = CHAPTER.read_text("utf-8")
    forged = chapter.replace(f"{BEGIN}\n", f"{BEGIN}\n9")
    assert with_part(forged, part(SimulationReport.read())) != forged


def test_a_run_without_a_failure_has_a_bound_and_one_with_a_failure_names_it(tmp_path: Path) -> None:
    good = SimulationReport.of([result(1, lost=3), result(2)], {1: "hash 1"}, [0, 4], seconds=2.0)
    assert (good.bound, good.original_lost, good.original_histories, good.unlike) == (1.5, 3, 1, [])
    assert (good.bugs.found, good.bugs.histories) == (2, 3)
    bad = SimulationReport.of(
        [result(1, "a: w1x is not in the document"), result(2)], {2: "other"}, [None], seconds=2.0
    )
    assert (bad.bound, bad.failed, bad.unlike, bad.broken["lost"], bad.bugs.found) == (None, [1], [2], 1, 0)
    assert "1 histories broke a promise: 1." in page(bad)
    assert "people also search" not in page(bad)
    asking = SimulationReport.of([replace(result(1), kinds=("asking", "torn"))], {}, [], seconds=2.0)
    assert "in 1 of them people also search" in page(asking)
    assert f"| {ASKING} | cannot be asked | 1 | 0 |" in page(asking)
    assert all(f"- {act}: " in page(asking) for act, _ in ASKED)
    assert f"2 s on {good.machine}\n" in page(good)
    assert "2 s\n" in page(replace(good, machine=""))
    assert "a bare loop" not in page(good)
    timed = SimulationReport.of(
        [replace(result(seed), floor=floor) for seed, floor in ((0, 0.004), (1, None), (20, 0.006))],
        {},
        [],
        seconds=2.0,
    )
    assert "a bare loop of 100,000 additions took 5.0 ms" in page(timed)
    kept = tmp_path / "results.json"
    kept.write_text(json.dumps(asdict(bad)), "utf-8")
    assert page(SimulationReport.read(kept)) == page(bad)


def test_every_defect_is_counted_by_its_kind() -> None:
    said = {
        "a/1f: lacks 2 events of user-1": "diverged",
        "a: the server's document is not the one that this device has": "diverged",
        "user-1: the server holds one event twice: evt_1": "doubled",
        "a: a load does not tell w1x": "lost",
        "a: a load tells w1x, which was forgotten": "leaked",
        "a: w1x (by hand, step 5) was typed and never reached the server of user-1": "lost",
        "the server's memory of user-1 holds w1x of user-2": "leaked",
        "the secret ghp_1 was kept": "leaked",
        "a does not start although nothing is wrong": OTHERWISE,
    }
    assert {defect: sort_of_defect(defect) for defect in said} == said
