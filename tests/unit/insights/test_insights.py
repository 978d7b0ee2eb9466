"""What events say about the work, as a pure fold: steps, profile, instincts, report."""

import random
from itertools import count
from typing import Any

import pytest

from sync.clock import timestamp, to_unix_ms
from sync.insights import queries, render
from sync.insights.features import action_of, normalise_text, outcome_of, stage_of, terms_of
from sync.insights.report import build_report
from sync.insights.state import DAY_MS, MAX_SESSIONS, InsightsState, decode, encode, instinct_id
from sync.log.event_types import TYPES_WITH_TAGS, USER_FEEDBACK
from sync.log.model import Event
from sync.log.retractions import Retractions
from tests.support import START, event

NOW = to_unix_ms(START)


class EventSequence:
    """Builds consecutive events, by default in one session."""

    def __init__(self) -> None:
        self.state = InsightsState()
        self.events: list[Event] = []
        self._numbers = count(1)

    def tell(self, kind: str, *, session: str = "s1", **more: Any) -> str:
        number = next(self._numbers)
        given: dict[str, Any] = {
            name: more.pop(name) for name in ("project_id", "origin", "local_date") if name in more
        }
        given |= {"session_id": session, "ts": timestamp(START), "position": number}
        told = event(number, type=kind, payload=more, event_id=f"evt_{number}", **given)
        self.events.append(told)
        self.state.apply(told)
        return told.event_id

    def tool(self, stage: str | None = None, **more: Any) -> str:
        if stage is not None:
            more["stage"] = stage
        return self.tell("tool_call", **more)

    def one(self, days_later: float = 0.0) -> queries.ScoredInstinct:
        (found,) = queries.scored_instincts(self.state, NOW + int(days_later * DAY_MS))
        return found


@pytest.fixture
def sequence() -> EventSequence:
    return EventSequence()


class TestReading:
    @pytest.mark.parametrize("kind", ["tool_call", "message", "exchange_recorded", *TYPES_WITH_TAGS, USER_FEEDBACK])
    def test_any_value_in_any_field_is_accepted(self, sequence: EventSequence, kind: str) -> None:
        told = ("tool", "stage", "details", "exit_code", "success", "error", "status", "file_path", "command")
        said = ("role", "content", "question", "answer", "title", "summary", "tags", "fact_type", "feedback_type")
        anything: list[Any] = [None, True, 0, -1, 10**400, 1.5, "", "字", [], [{}], {}, {"a": [1]}]
        for name in (*told, *said):
            for value in anything:
                sequence.tell(kind, **{name: value})
                sequence.tell(kind, details={name: value})
                among: dict[str, Any] = {"tool": "Edit", "content": "字", "tags": ["一"], name: [value]}
                sequence.tell(kind, **among)
        assert decode(encode(sequence.state)) == sequence.state

    @pytest.mark.parametrize(
        ("payload", "stage"),
        [
            ({"stage": "Design "}, "design"),
            ({"tool": "Shell", "details": {"command": "make test"}}, "test"),
            ({"tool": "Shell", "details": {"command": "cd x && pytest -q"}}, "test"),
            ({"tool": "Shell", "details": {"command": "ls tests"}}, None),
            ({"tool": "Write", "details": {"file_path": "src/app.py"}}, "implement"),
            ({"tool": "Write", "details": {"file_path": "tests\\unit\\a.py"}}, "test"),
            ({"tool": "ApplyPatch", "details": {"file_path": "a.spec.ts"}}, "test"),
            ({"tool": "Edit", "details": {"file_path": "README.md"}}, "document"),
            ({"tool": "Read", "details": {"file_path": "README.md"}}, None),
            ({"tool": 5, "details": [], "stage": {}}, None),
        ],
    )
    def test_a_stage_is_named_or_shown_by_the_tool(self, payload: dict[str, Any], stage: str | None) -> None:
        assert stage_of(event(1, type="tool_call", payload=payload)) == stage

    @pytest.mark.parametrize(
        ("payload", "went_well"),
        [
            ({"details": {"exit_code": 0}}, True),
            ({"details": {"exit_code": 2}}, False),
            ({"exit_code": 1}, False),
            ({"success": False}, False),
            ({"error": "boom"}, False),
            ({"status": "ok"}, True),
            ({"details": {"exit_code": "1"}}, None),
            ({}, None),
        ],
    )
    def test_an_outcome_is_success_failure_or_unknown(self, payload: dict[str, Any], went_well: bool | None) -> None:
        assert outcome_of(event(1, type="tool_call", payload=payload)) is went_well

    def test_an_action_is_what_was_done_without_what_it_was_done_to(self) -> None:
        command = {"tool": "Shell", "details": {"command": "npm test --grep 打给张三"}}
        assert action_of(event(1, type="tool_call", payload=command)) == "Shell npm test"

    def test_the_same_words_in_other_clothes_are_the_same(self) -> None:
        assert normalise_text("Ｕse  FastAPI！") == normalise_text("use fastapi")
        assert {"fastapi", "接口", "重构"} <= set(terms_of("用 FastAPI 做接口重构"))


class TestNextStep:
    def test_it_is_what_came_most_often_with_the_events_that_were_it(self, sequence: EventSequence) -> None:
        tests = []
        for _ in range(3):
            sequence.tool("implement")
            tests.append(sequence.tool("test"))
        sequence.tool("implement")
        sequence.tool("document")
        sequence.tool("implement")
        found = queries.next_steps(sequence.state, project_id=None, session_id="s1", stage=None, limit=5)
        assert (found.stage, found.scope) == ("implement", "proj_abcd1234")
        assert [(step.step, step.share, step.count) for step in found.stages] == [
            ("test", 0.75, 3),
            ("document", 0.25, 1),
        ]
        assert found.stages[0].evidence == tuple(reversed(tests))

    def test_types_of_events_are_predicted_too(self, sequence: EventSequence) -> None:
        for _ in range(3):
            sequence.tell("message", role="user", content="做这个")
            sequence.tool("implement")
        sequence.tell("message", role="user", content="做那个")
        found = queries.next_steps(sequence.state, project_id=None, session_id=None, stage=None, limit=5)
        assert [step.step for step in found.types] == ["tool_call"]

    def test_words_about_a_session_are_no_step_of_it(self, sequence: EventSequence) -> None:
        for _ in range(3):
            sequence.tool("implement")
            sequence.tell("session_meta", title="重构")
            sequence.tell("message", role="user", content="做那个")
        sequence.tool("implement")
        sequence.tell("session_meta", title="重构 二")
        found = queries.next_steps(sequence.state, project_id=None, session_id=None, stage=None, limit=5)
        assert (found.type, [step.step for step in found.types]) == ("tool_call", ["message"])

    def test_sessions_do_not_run_into_each_other(self, sequence: EventSequence) -> None:
        for number in range(4):
            sequence.tool("design", session=f"a{number}")
            sequence.tool("test", session=f"b{number}")
        found = queries.next_steps(sequence.state, project_id=None, session_id=None, stage="design", limit=5)
        assert found.stages == ()

    def test_a_project_that_has_seen_little_learns_from_all(self, sequence: EventSequence) -> None:
        for number in range(4):
            sequence.tool("design", session=f"s{number}", project_id="proj_old")
            sequence.tool("implement", session=f"s{number}", project_id="proj_old")
        sequence.tool("design", session="n", project_id="proj_new")
        found = queries.next_steps(sequence.state, project_id="proj_new", session_id=None, stage=None, limit=5)
        assert (found.scope, found.stages[0].step) == ("", "implement")

    def test_without_anything_there_is_nothing_to_say(self, sequence: EventSequence) -> None:
        found = queries.next_steps(sequence.state, project_id=None, session_id=None, stage=None, limit=5)
        assert (found.stages, found.types) == ((), ())


class TestInstincts:
    def test_confidence_rises_with_each_correction_and_is_promoted_by_several_sessions(
        self, sequence: EventSequence
    ) -> None:
        seen = []
        for number in range(3):
            sequence.tool("implement", session=f"s{number}")
            proof = sequence.tell(
                "user_feedback", feedback_type="correction", content=f"先写测试{'！' * number}", session=f"s{number}"
            )
            seen.append((sequence.one().confidence, sequence.one().status))
            assert proof in sequence.one().supporting_events
        assert [confidence for confidence, _ in seen] == [0.5, 0.6667, 0.75]
        assert [status for _, status in seen] == ["candidate", "promoted", "promoted"]
        assert (sequence.one().stage, sequence.one().kind) == ("implement", "correct")

    def test_one_session_alone_promotes_nothing(self, sequence: EventSequence) -> None:
        for _ in range(5):
            sequence.tell("user_feedback", feedback_type="correction", content="先写测试")
        assert (sequence.one().confidence > 0.8, sequence.one().status) == (True, "candidate")

    def test_it_falls_with_what_speaks_against_it(self, sequence: EventSequence) -> None:
        for number in range(3):
            sequence.tell("user_feedback", feedback_type="rejection", content="用单例", session=f"s{number}")
        before = sequence.one().confidence
        against = sequence.tell("user_feedback", feedback_type="approval", content="用单例")
        rejected = next(item for item in queries.scored_instincts(sequence.state, NOW) if item.kind == "correct")
        assert rejected.confidence < before
        assert rejected.opposing_events == (against,)

    def test_it_decays_as_its_events_grow_old_until_it_retires(self, sequence: EventSequence) -> None:
        for number in range(3):
            sequence.tell("user_feedback", feedback_type="correction", content="先写测试", session=f"s{number}")
        confidences = [sequence.one(days).confidence for days in (0, 60, 120, 400)]
        assert confidences == sorted(confidences, reverse=True)
        assert [sequence.one(days).status for days in (0, 80, 400)] == ["promoted", "candidate", "retired"]

    def test_a_call_that_fails_is_learnt_and_unlearnt_when_it_goes_well(self, sequence: EventSequence) -> None:
        def shell(code: int, session: str) -> str:
            return sequence.tool(tool="Shell", details={"command": "npm test", "exit_code": code}, session=session)

        proofs = [shell(1, f"s{number}") for number in range(4)]
        assert (sequence.one().kind, sequence.one().text, sequence.one().supporting_events) == (
            "fails",
            "Shell npm test",
            tuple(proofs),
        )
        assert sequence.one().status == "promoted"
        well = [shell(0, "s9") for _ in range(12)]
        assert sequence.one().opposing_events == tuple(well)
        assert sequence.one().status == "retired"

    def test_a_person_judges_one_by_its_id(self, sequence: EventSequence) -> None:
        sequence.tell("user_feedback", feedback_type="correction", content="先写测试")
        named = sequence.one().instinct_id
        assert named == instinct_id("correct:先写测试")
        sequence.tell("user_feedback", feedback_type="approval", instinct_id=named, session="s2")
        assert sequence.one().status == "promoted"
        for _ in range(4):
            sequence.tell("user_feedback", feedback_type="rejection", instinct_id=named, session="s3")
        assert sequence.one().status == "retired"

    @pytest.mark.parametrize("origin", ["model-written", "peer"])
    def test_words_that_are_not_the_user_s_promote_nothing(self, sequence: EventSequence, origin: str) -> None:
        for number in range(9):
            sequence.tell(
                "user_feedback", feedback_type="correction", content="删掉", session=f"s{number}", origin=origin
            )
        assert sequence.one().status == "candidate"


class TestState:
    def test_it_is_a_fold_whose_bytes_depend_on_the_events_alone(self) -> None:
        chance = random.Random(7)
        story = EventSequence()
        kinds = ("design", "implement", "test", None)
        for number in range(1_500):
            session = f"s{chance.randrange(2 * MAX_SESSIONS)}"
            story.tool(chance.choice(kinds), session=session, tool="Shell", details={"exit_code": number % 2})
            story.tell("memory_fact", fact_type="preference", content=f"喜欢{chance.random()}", session=session)
        kept = InsightsState()
        for told in story.events:  # saved and read between any two
            kept.apply(told)
            if chance.random() < 0.01:
                kept = decode(encode(kept)) or InsightsState()
        assert encode(kept) == encode(story.state)
        assert len(kept.sessions) == MAX_SESSIONS

    def test_what_is_forgotten_says_nothing_whether_it_was_blanked_yet_or_not(self) -> None:
        told = event(1, type="user_feedback", position=1, payload={"feedback_type": "correction", "content": "忘掉"})
        blank = event(1, type="user_feedback", position=1, payload={}, event_id=told.event_id)
        one, other = InsightsState(), InsightsState()
        withdrawn = Retractions()
        wish = event(2, type="payload_forgotten", payload={"event_ids": [told.event_id]})
        withdrawn.apply((wish,))
        one.apply(withdrawn.effective_event(told))
        other.apply(blank)
        assert encode(one) == encode(other)
        assert "忘掉".encode() not in encode(one)

    @pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"format": 99}', b'{"sessions": 5}'])
    def test_a_cache_that_is_none_is_not_read(self, junk: bytes) -> None:
        assert decode(junk) is None

    @pytest.mark.parametrize(
        "payload",
        [{"tags": [1, None], "details": 7, "tool": {}}, {"content": ["x"], "feedback_type": []}, {"question": 5}],
    )
    @pytest.mark.parametrize(
        "kind", ["tool_call", "memory_fact", "user_feedback", "message", "exchange_recorded", "session_started"]
    )
    def test_what_other_programs_write_stops_nothing(
        self, sequence: EventSequence, kind: str, payload: dict[str, Any]
    ) -> None:
        sequence.tell(kind, **payload)
        assert decode(encode(sequence.state)) == sequence.state


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

    def test_the_page_is_one_file_in_which_nothing_runs_or_loads(self) -> None:
        page = render.render_html(build_report(self.told().state, START, days=30))
        assert "<script" not in page
        assert "&lt;script&gt;" in page
        assert page.count("<svg") == 4
        assert "default-src 'none'" in page
        assert not [word for word in ("http://", "https://", "src=", "href=", "url(") if word in page]
        assert page.count("<rect") >= 54

    def test_no_text_of_an_event_makes_a_heading_or_a_link_in_the_markdown(self) -> None:
        text = render.render_markdown(build_report(self.told().state, START, days=7))
        assert text.startswith("# 记忆分析报告\n")
        assert "喜欢 \\| 绿茶 \\# 加糖" in text
        assert "<script>" not in text
        assert [line for line in text.splitlines() if line.startswith("## ")] == [
            f"## {name}" for name in render.SECTION_TITLES
        ]

    def test_without_a_word_it_says_so(self) -> None:
        report = build_report(InsightsState(), START, days=3)
        assert render.render_markdown(report).count(render.EMPTY_SECTION) == len(render.SECTION_TITLES)
        assert render.render_html(report).count(render.EMPTY_SECTION) == len(render.SECTION_TITLES)
