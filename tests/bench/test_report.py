"""docs/speed.md holds the stored measurements."""

from dataclasses import replace
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from tests.bench.cases.basic_memory import PeerMeasurement
from tests.bench.cases.log_growth import GrowthPoint
from tests.bench.measurement import Measurement, figure
from tests.bench.plot import GROWTH, growth_svg
from tests.bench.report import BEGIN, CHAPTER, END, PLOT, BenchmarkReport, MachineInfo, page, with_page

MACHINE: Final = MachineInfo(
    cores=2, memory_gb=8.0, kernel="Linux 6.1", python="3.11.7", sqlite="3.45", postgresql="15.8", node="20.1", load=0.4
)
POINTS: Final = [GrowthPoint(1_000, 100.0, 0.2, 2.0, 50.0, 40.0), GrowthPoint(1_000_000, 110.0, 0.22, 2.2, 150.0, 44.0)]
ROWS: Final = [
    Measurement("load", 8_123.4, "calls/s", 20_000.0, ">= 1/2", met=False, peers={"pygls": 2_200.0, "mcp": 1_570.0}),
    Measurement("idle RSS", 41.26, "MB", None, "<= 60 MB", met=True),
    Measurement("update p95", 3.456, "ms", 1.0, "reported", met=True),
]
RECORD: Final = BenchmarkReport(
    "2026-02-02", MACHINE, ROWS, POINTS, [PeerMeasurement("other", 100, 9_000.0, 40.0, 20.0, 300.0)]
)
SVG: Final = "{http://www.w3.org/2000/svg}"


def test_the_chapter_holds_the_page_of_the_kept_record() -> None:
    chapter = CHAPTER.read_text("utf-8")
    assert with_page(chapter, page(BenchmarkReport.read())) == chapter, "python -m tests.bench --publish"


def test_the_plot_is_that_of_the_kept_record() -> None:
    assert PLOT.read_text("utf-8") == growth_svg(BenchmarkReport.read().growth), "python -m tests.bench --publish"


def test_only_the_part_between_the_marks_is_written() -> None:
    assert with_page(f"before {BEGIN}old{END} after", "new\n") == f"before {BEGIN}\nnew\n{END} after"
    for place in ("", BEGIN, f"{END}{BEGIN}"):
        with pytest.raises(ValueError, match="no place"):
            with_page(place, "new\n")


def test_a_row_tells_measure_floor_ratio_others_and_verdict() -> None:
    lines = page(RECORD).splitlines()
    assert "| load | 8,120 calls/s | 20,000 calls/s | 0.41 | pygls 2,200 · mcp 1,570 | >= 1/2 | missed |" in lines
    assert "| idle RSS | 41.3 MB |  |  |  | <= 60 MB | ✓ |" in lines
    assert "| update p95 | 3.46 ms | 1 ms | 3.46 |  | reported |  |" in lines
    assert "| load | 0.2 ms | 0.22 ms | 1.10 |" in lines
    assert "| other | 9,000 ms | 40 ms | 20 ms | 300 MB |" in lines


def test_a_machine_that_had_other_work_is_said_to_have_had_it() -> None:
    assert "Provisional" not in page(RECORD)
    assert "Provisional" in page(replace(RECORD, machine=replace(MACHINE, load=1.5)))


def test_what_was_not_measured_has_no_table() -> None:
    bare = page(replace(RECORD, growth=[], notes=[]))
    assert "events in the log" not in bare
    assert "other" not in bare.replace("others", "")


@pytest.mark.parametrize(("value", "said"), [(0.04567, "0.0457"), (12.34, "12.3"), (100, "100"), (123_456, "123,000")])
def test_figures_are_as_fine_as_the_measurement(value: float, said: str) -> None:
    assert figure(value) == said


def test_the_plot_draws_each_cost_as_a_multiple_of_the_first() -> None:
    root = ET.fromstring(growth_svg(POINTS))
    lines = [
        [tuple(map(float, place.split(","))) for place in line.attrib["points"].split()]
        for line in root.iter(f"{SVG}polyline")
    ]
    assert len(lines) == len(GROWTH)
    assert len({line[0] for line in lines}) == 1, "all begin at one"
    rises = [(line[0][1] - line[-1][1]) for line in lines]
    named = dict(zip((name for name, _, _ in GROWTH), rises, strict=True))
    assert named["load_ms"] == pytest.approx(named["start_ms"], abs=0.2)
    assert named["pull_ms"] == max(rises)
    assert named["pull_ms"] == pytest.approx(20 * named["load_ms"], rel=0.05)


def test_the_plot_shows_little_growth_as_little() -> None:
    """The axis goes to twice at least, so that noise does not fill the picture."""
    texts = [text.text for text in ET.fromstring(growth_svg(POINTS[:1] * 2)).iter(f"{SVG}text")]
    assert "2×" in texts
    assert "3×" not in texts
