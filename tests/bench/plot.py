"""Growth with the log as a picture: each line is a cost as a multiple of that on the shortest log."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from tests.bench.cases.log_growth import GrowthPoint

GROWTH: Final = (  # the fields of a point, what a reader calls them, their unit
    ("load_ms", "load", "ms"),
    ("update_ms", "update", "ms"),
    ("start_ms", "start to first load", "ms"),
    ("pull_ms", "pull of 1,000 events", "ms"),
    ("rss_mb", "memory (RSS)", "MB"),
)
# Told apart also by the colour-blind; the second set lies on dark pages.
LIGHT: Final = ("#0072b2", "#d55e00", "#00795a", "#b0528a", "#7a6000")
DARK: Final = ("#56b4e9", "#ff9a4d", "#2fcf9f", "#e8a0cb", "#e6c84d")
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "12 4")
WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 540, 24, 292
LEAST_TOP: Final = 2.0  # so that noise does not fill the picture


def _strokes(colours: Sequence[str]) -> str:
    return "".join(f".line{number}{{stroke:{colour}}}" for number, colour in enumerate(colours))


STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.axis{stroke:#59636e}.grid{stroke:#d1d9e0}"
    f"{_strokes(LIGHT)}@media(prefers-color-scheme:dark){{"
    f"text{{fill:#f0f6fc}}.axis{{stroke:#9198a1}}.grid{{stroke:#3d444d}}{_strokes(DARK)}}}"
)


def growth_svg(points: Sequence["GrowthPoint"]) -> str:
    """The picture; the same points give the same bytes. It has no background: it lies on light and dark pages."""
    return "\n".join(_lines(points)) + "\n"


def _lines(points: Sequence["GrowthPoint"]) -> Iterator[str]:
    ratios = {name: [getattr(point, name) / getattr(points[0], name) for point in points] for name, _, _ in GROWTH}
    top = max(LEAST_TOP, math.ceil(max(max(values) for values in ratios.values())))
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    yield "<title>Cost of a call on a growing log, as a multiple of that on the shortest</title>"
    yield f"<style>{STYLE}</style>"
    for step in range(5):
        ratio = top * step / 4
        y = _y(ratio, top)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{ratio:g}×</text>'
    for point in points:
        x = _x(point.events, points)
        yield f'<line class="axis" x1="{x:.1f}" y1="{BOTTOM}" x2="{x:.1f}" y2="{BOTTOM + 5}"/>'
        yield f'<text x="{x:.1f}" y="{BOTTOM + 21}" text-anchor="middle">{point.events:,}</text>'
    yield f'<line class="axis" x1="{LEFT}" y1="{BOTTOM}" x2="{RIGHT}" y2="{BOTTOM}"/>'
    yield f'<text x="{(LEFT + RIGHT) / 2:g}" y="{HEIGHT - 6}" text-anchor="middle">events in the log</text>'
    for number, ((name, label, _), dash) in enumerate(zip(GROWTH, DASHES, strict=True)):
        places = " ".join(
            f"{_x(point.events, points):.1f},{_y(ratio, top):.1f}"
            for point, ratio in zip(points, ratios[name], strict=True)
        )
        drawn = f'class="line{number}" fill="none" stroke-width="2.5" stroke-dasharray="{dash or "none"}"'
        y = TOP + 20 + number * 26
        yield f'<polyline {drawn} points="{places}"/>'
        yield f'<line {drawn} x1="{RIGHT + 20}" y1="{y}" x2="{RIGHT + 52}" y2="{y}"/>'
        yield f'<text x="{RIGHT + 60}" y="{y + 4}">{escape(label)}</text>'
    yield "</svg>"


def _x(events: int, points: Sequence["GrowthPoint"]) -> float:
    first, last = math.log10(points[0].events), math.log10(points[-1].events)
    return LEFT + 24 + (RIGHT - LEFT - 48) * (math.log10(events) - first) / ((last - first) or 1)


def _y(ratio: float, top: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * ratio / top
