"""`index/keywords.json` and `summary.md`, made from the pages. Pure; no time of writing in them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from sync.daily.model import Record
from sync.daily.pages.page_format import DayPage, bracketed, line_ranges
from sync.daily.records.maintenance import keywords_of
from sync.texts.language import Language
from sync.texts.table import text

MAX_LATEST: Final = 20
MAX_TAGS: Final = 15


class DayFile(msgspec.Struct, frozen=True):
    """One file of a day: the number in its name (1 is `<day>.md`), its page, and its records by number."""

    part: int
    page: DayPage
    records: Mapping[int, Record]


def keywords_json(files: Sequence[DayFile], updated_at: str, *, with_origin: bool) -> str:
    """The index. `line_range`: a session's first and last line in its file, counted from 1."""
    entries: list[dict[str, Any]] = []
    for file in files:
        ranges = line_ranges(file.page)
        for session in file.page.sessions:
            entry: dict[str, Any] = {
                "date": file.page.day,
                "session": session.number,
                "keywords": keywords_of(session.content),
                "topics": [session.content.topic],
                "line_range": list(ranges[session.number]),
            }
            if file.part > 1:
                entry["file"] = file_name(file.page.day, file.part)
            if session.label:
                entry["label"] = session.label
            if with_origin and session.origin:
                entry["project"] = session.origin
            entries.append(entry)
    return (
        json.dumps({"version": "1.0", "updated_at": updated_at, "entries": entries}, ensure_ascii=False, indent=2)
        + "\n"
    )


def file_name(day: str, part: int) -> str:
    return f"{day}.md" if part == 1 else f"{day}.{part}.md"


def summary_md(files: Sequence[DayFile], language: Language) -> str:
    """All pages in one: the important records, the latest ones, and the most frequent tags."""
    records = [(file.page.day, number, record) for file in files for number, record in file.records.items()]
    current = [item for item in records if "outdated" not in item[2].marks]
    important = [item for item in current if "important" in item[2].marks]
    newest = sorted(current, key=lambda item: (item[2].moment, item[1]), reverse=True)[:MAX_LATEST]
    tags = Counter(tag for _, _, record in current for tag in record.content.tags)
    days = len({day for day, _, _ in records})
    counted = text("{days:day|days}, {count:conversation|conversations}", language, days=days, count=len(records))
    lines = [f"# {text('Summary of the memory', language)}", "", counted]
    for title, items in (("Important", important), ("Latest", newest)):
        if items:
            lines += [
                "",
                f"## {text(title, language)}",
                *(f"- {day} #{number} {bracketed(one.label)}{one.content.topic}" for day, number, one in items),
            ]
    if tags:
        shown = " ".join(f"#{tag} ×{count}" for tag, count in tags.most_common(MAX_TAGS))
        lines += ["", f"## {text('Frequent tags', language)}", shown]
    return "\n".join(lines) + "\n"
