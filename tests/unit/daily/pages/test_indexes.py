"""keywords.json and the summary of a month."""

import json

from sync.daily.model import normalised_content
from sync.daily.pages.indexes import DayFile, keywords_json, summary_md
from sync.daily.pages.page_format import DayPage, PageSession, render
from sync.texts.language import ZH
from tests.unit.daily.examples import DAY, record


def test_the_index_and_the_summary_list_the_sessions_of_the_pages() -> None:
    one = record(1, "火锅", content=normalised_content("火锅", ["周五去吃火锅"], (), ["吃饭"]), marks=("important",))
    page = DayPage(DAY, (PageSession(1, one.time, one.content, ("important",), "/家/项目"),))
    files = [DayFile(1, page, {1: one})]
    index = json.loads(keywords_json(files, "2026-01-29T10:30:45Z", with_origin=True))
    assert index["version"] == "1.0"
    (entry,) = index["entries"]
    lines = render(page).split("\n")
    assert entry["topics"] == ["火锅"]
    assert {"吃饭", "火锅"} <= set(entry["keywords"])
    assert entry["project"] == "/家/项目"
    assert lines[entry["line_range"][0] - 1].startswith("## Session 1")
    assert lines[entry["line_range"][1] - 1] == "/家/项目"
    assert "- 2026-01-29 #1 火锅" in summary_md(files, ZH)
    assert "#吃饭" in summary_md(files, ZH)
