"""Render a report as Markdown, and as a self-contained HTML page. Pure.

Everything from the log is escaped, in Markdown so that it starts no heading, table or link. The page's policy allows
no script and no request.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import Final

from sync.insights.report import Report
from sync.texts.language import ZH, Language
from sync.texts.table import text

TITLE: Final = "Analysis of the memory"
MADE: Final = "{made_at} · {total:event|events}"
INSTINCTS: Final = {
    "correct": "corrected: {text} (confidence {confidence:.2f})",
    "keep": "kept: {text} (confidence {confidence:.2f})",
    "fails": "often fails: {text} (confidence {confidence:.2f})",
}
SECTION_TITLES: Final = (
    "Activity by day",
    "Hours of the day",
    "Topics",
    "Tags",
    "Projects",
    "Questions asked again",
    "Technologies and habits",
    "Experience",
)
EMPTY_SECTION: Final = "(nothing yet)"
HABITS: Final = ("languages: {words}", "tools: {words}", "stages: {words}")
COUNTED: Final = "{name} ({count})"

_MARKDOWN_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()<>#|!~])")
_WIDTH, _HEIGHT, _ROW = 720, 160, 24
_STYLE: Final = """
body{font:16px/1.6 system-ui,"PingFang SC","Microsoft YaHei",sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;
color:#222;background:#fff}h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem}svg{width:100%;height:auto}
rect{fill:#4a7ebb}text{fill:currentColor;font-size:12px}.quiet{color:#777;font-size:.9rem}li{margin:.2rem 0}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#1c1c1e}}
"""


def render_markdown(report: Report, language: Language) -> str:
    """The report as a Markdown document."""
    parts = [f"# {text(TITLE, language)}", _made(report, language)]
    for name, lines in zip(SECTION_TITLES, _sections(report, language), strict=True):
        parts.append(f"## {text(name, language)}")
        parts.append("\n".join(f"- {_escape_markdown(line)}" for line in lines) or text(EMPTY_SECTION, language))
    return "\n\n".join(parts) + "\n"


def render_html(report: Report, language: Language) -> str:
    """The report as a page of its own, with charts."""
    titles = [text(title, language) for title in SECTION_TITLES]
    days = [(f"{day:%m-%d}", count) for day, count in report.days]
    hours = [(str(hour), count) for hour, count in report.hours]
    drawn = {
        titles[0]: _column_chart(days, titles[0]),
        titles[1]: _column_chart(hours, titles[1]),
        titles[2]: _bar_chart(report.topics, titles[2]),
        titles[3]: _bar_chart(report.tags, titles[3]),
    }
    body = []
    for name, lines in zip(titles, _sections(report, language), strict=True):
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        chart = drawn.get(name) if lines else None
        body.append(
            f"<h2>{name}</h2>"
            + (chart or (f"<ul>{items}</ul>" if lines else f"<p>{text(EMPTY_SECTION, language)}</p>"))
        )
    title, when = text(TITLE, language), _made(report, language)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="{"zh-CN" if language is ZH else "en"}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f'<title>{title}</title><style>{_STYLE}</style></head>\n<body><h1>{title}</h1><p class="quiet">{when}</p>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _made(report: Report, language: Language) -> str:
    return text(MADE, language, made_at=f"{report.made_at:%Y-%m-%d %H:%M}", total=report.total)


def _sections(report: Report, language: Language) -> list[list[str]]:
    """The lines of each section, in the order of their names."""

    def say(english: str, **values: object) -> str:
        return text(english, language, **values)

    def counted(found: Sequence[tuple[str, int]]) -> list[str]:
        return [say(COUNTED, name=name, count=count) for name, count in found]

    profile = report.profile
    habits = [
        say(name, words=say(", ").join(counted(found)))
        for name, found in zip(HABITS, (profile.languages, profile.tools, profile.stages), strict=True)
        if found
    ]
    return [
        [say("{day}: {count}", day=f"{day:%Y-%m-%d}", count=count) for day, count in report.days if count],
        [say("{hour} h: {count}", hour=hour, count=count) for hour, count in report.hours if count],
        counted(report.topics),
        counted(report.tags),
        counted(report.projects),
        [say("{name} ({count:time|times})", name=asked.text, count=asked.count) for asked in report.questions],
        [*habits, *(say("preference: {text}", text=item.text) for item in profile.preferences)],
        [say(INSTINCTS[item.kind], text=item.text, confidence=item.confidence) for item in report.instincts],
    ]


def _escape_markdown(line: str) -> str:
    """Text that is nothing but text in Markdown."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(line.split()))


def _column_chart(values: Sequence[tuple[str, int]], name: str) -> str:
    """Upright bars, one for each value; every few of them with its label below."""
    if not values:
        return ""
    most = max(1, *(count for _, count in values))
    width = _WIDTH / len(values)
    every = max(1, len(values) // 12)
    drawn = []
    for place, (label, count) in enumerate(values):
        height = round(count / most * _HEIGHT, 1)
        at = f'x="{place * width + 1:.1f}" y="{_HEIGHT - height:.1f}" width="{max(1.0, width - 2):.1f}"'
        drawn.append(f'<rect {at} height="{height}"><title>{escape(label)}: {count}</title></rect>')
        if place % every == 0:
            drawn.append(f'<text x="{place * width + 1:.1f}" y="{_HEIGHT + 16}">{escape(label)}</text>')
    return _svg("".join(drawn), _HEIGHT + 24, name)


def _bar_chart(values: Sequence[tuple[str, int]], name: str) -> str:
    """Lying bars with their names before them."""
    most = max((count for _, count in values), default=1)
    drawn = []
    for place, (label, count) in enumerate(values):
        top, long = place * _ROW, count / most * (_WIDTH - 260)
        drawn.append(f'<text x="0" y="{top + 16}">{escape(label[:24])}</text>')
        drawn.append(f'<rect x="200" y="{top + 4}" width="{long:.1f}" height="{_ROW - 8}"></rect>')
        drawn.append(f'<text x="{206 + long:.1f}" y="{top + 16}">{count}</text>')
    return _svg("".join(drawn), max(1, len(values)) * _ROW, name)


def _svg(inner: str, height: int, name: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(name)}">{inner}</svg>'
