"""The numbers of the report."""

from sync.insights.report import build_report
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

    def test_it_tells_what_was_asked_again_and_what_it_was_about(self) -> None:
        report = build_report(self.told().state, START, days=7)
        assert [(asked.count, asked.text[:7]) for asked in report.questions] == [(3, "火锅店几点开门")]
        assert "火锅店" in "".join(term for term, _ in report.topics)
        assert dict(report.tags) == {"饮料<b>": 1}
        assert (len(report.days), report.days[-1][1]) == (7, 6)
        assert sum(count for _, count in report.hours) == report.total == 6
