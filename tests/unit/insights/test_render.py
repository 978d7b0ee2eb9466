"""The report as a page and as Markdown."""

from sync.insights import render
from sync.insights.report import build_report
from sync.insights.state import InsightsState
from sync.texts.language import EN, ZH
from sync.texts.table import text
from tests.support import START
from tests.unit.insights.event_sequence import EventSequence


class TestReport:
    def told(self) -> EventSequence:
        story = EventSequence()
        for number in range(3):
            story.tell("exchange_recorded", question="火锅店几点开门？<script>alert(1)</script>", session=f"s{number}")
        story.tell("exchange_recorded", question="明天天气")
        story.tell("memory_fact", fact_type="preference", content="喜欢 | 绿茶 # 加糖", tags=["饮料<b>"])
        story.tool("test", tool="Shell", details={"file_path": "a.py"})
        return story

    def test_the_page_is_one_file_in_which_nothing_runs_or_loads(self) -> None:
        page = render.render_html(build_report(self.told().state, START, days=30), ZH)
        assert "<script" not in page
        assert "&lt;script&gt;" in page
        assert page.count("<svg") == 4
        assert "default-src 'none'" in page
        assert not [word for word in ("http://", "https://", "src=", "href=", "url(") if word in page]
        assert page.count("<rect") >= 54

    def test_no_text_of_an_event_makes_a_heading_or_a_link_in_the_markdown(self) -> None:
        page = render.render_markdown(build_report(self.told().state, START, days=7), ZH)
        assert page.startswith("# 记忆分析报告\n")
        assert "喜欢 \\| 绿茶 \\# 加糖" in page
        assert "<script>" not in page
        assert [line for line in page.splitlines() if line.startswith("## ")] == [
            f"## {text(name, ZH)}" for name in render.SECTION_TITLES
        ]

    def test_without_a_word_it_says_so(self) -> None:
        report = build_report(InsightsState(), START, days=3)
        for language in (ZH, EN):
            empty = text(render.EMPTY_SECTION, language)
            assert render.render_markdown(report, language).count(empty) == len(render.SECTION_TITLES)
            assert render.render_html(report, language).count(empty) == len(render.SECTION_TITLES)
