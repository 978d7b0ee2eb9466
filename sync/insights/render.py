"""Render a report as Markdown, and as a self-contained HTML page. Pure.

Everything from the log is escaped, in Markdown so that it starts no heading, table or link. The page's policy allows
no script and no request.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import Final

from sync.insights.report import Report

TITLE: Final = "记忆分析报告"
KIND_LABELS: Final = {"correct": "纠正", "keep": "保持", "fails": "常失败"}
SECTION_TITLES: Final = ("每日活动", "一天中的时段", "主题", "标签", "项目", "重复的问题", "技术栈与习惯", "经验")
EMPTY_SECTION: Final = "（暂无）"

_MARKDOWN_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()<>#|!~])")
_WIDTH, _HEIGHT, _ROW = 720, 160, 24
_STYLE: Final = """
body{font:16px/1.6 system-ui,"PingFang SC","Microsoft YaHei",sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;
color:#222;background:#fff}h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem}svg{width:100%;height:auto}
rect{fill:#4a7ebb}text{fill:currentColor;font-size:12px}.quiet{color:#777;font-size:.9rem}li{margin:.2rem 0}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#1c1c1e}}
"""


def render_markdown(report: Report) -> str:
    """The report as a Markdown document."""
    parts = [f"# {TITLE}", f"{report.made_at:%Y-%m-%d %H:%M} · 共 {report.total} 个事件"]
    for name, lines in zip(SECTION_TITLES, _sections(report), strict=True):
        parts.append(f"## {name}")
        parts.append("\n".join(f"- {_escape_markdown(line)}" for line in lines) or EMPTY_SECTION)
    return "\n\n".join(parts) + "\n"


def render_html(report: Report) -> str:
    """The report as a page of its own, with charts."""
    days = [(f"{day:%m-%d}", count) for day, count in report.days]
    hours = [(str(hour), count) for hour, count in report.hours]
    drawn = {
        SECTION_TITLES[0]: _column_chart(days, SECTION_TITLES[0]),
        SECTION_TITLES[1]: _column_chart(hours, SECTION_TITLES[1]),
        SECTION_TITLES[2]: _bar_chart(report.topics, SECTION_TITLES[2]),
        SECTION_TITLES[3]: _bar_chart(report.tags, SECTION_TITLES[3]),
    }
    body = []
    for name, lines in zip(SECTION_TITLES, _sections(report), strict=True):
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        chart = drawn.get(name) if lines else None
        body.append(f"<h2>{name}</h2>" + (chart or (f"<ul>{items}</ul>" if lines else f"<p>{EMPTY_SECTION}</p>")))
    when = f"{report.made_at:%Y-%m-%d %H:%M} · 共 {report.total} 个事件"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="zh-CN"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f'<title>{TITLE}</title><style>{_STYLE}</style></head>\n<body><h1>{TITLE}</h1><p class="quiet">{when}</p>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _sections(report: Report) -> list[list[str]]:
    """The lines of each section, in the order of their names."""
    profile = report.profile
    habits = [
        f"{name}：{'、'.join(f'{word}（{count}）' for word, count in found)}"
        for name, found in (("语言", profile.languages), ("工具", profile.tools), ("阶段", profile.stages))
        if found
    ]
    return [
        [f"{day:%Y-%m-%d}：{count}" for day, count in report.days if count],
        [f"{hour} 时：{count}" for hour, count in report.hours if count],
        [f"{term}（{count}）" for term, count in report.topics],
        [f"{tag}（{count}）" for tag, count in report.tags],
        [f"{project}（{count}）" for project, count in report.projects],
        [f"{question.text}（{question.count} 次）" for question in report.questions],
        [*habits, *(f"偏好：{item.text}" for item in profile.preferences)],
        [f"{KIND_LABELS[item.kind]}：{item.text}（可信度 {item.confidence:.2f}）" for item in report.instincts],
    ]


def _escape_markdown(text: str) -> str:
    """Text that is nothing but text in Markdown."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))


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
