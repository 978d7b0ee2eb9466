"""The next step, and instincts with their confidence."""

import pytest

from sync.insights import queries
from sync.lessons.corrections import instinct_id
from tests.unit.insights.event_sequence import NOW, EventSequence


@pytest.fixture
def sequence() -> EventSequence:
    return EventSequence()


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

    def test_a_habit_seen_in_two_projects_holds_in_every_project(self, sequence: EventSequence) -> None:
        def asked(project_id: str) -> list[tuple[str, int]]:
            found = queries.scored_instincts(sequence.state, NOW, project_id=project_id)
            return [(item.project_id, len(item.supporting_events)) for item in found]

        for project_id in ("proj_api", "proj_web"):
            sequence.tell("user_feedback", feedback_type="correction", content="先写测试", project_id=project_id)
            if project_id == "proj_api":
                assert (asked("proj_api"), asked("proj_web")) == ([("proj_api", 1)], [])
        assert asked("proj_api") == asked("proj_web") == asked("proj_other") == [("proj_global", 2)]

    def test_a_call_that_fails_in_two_projects_is_one_instinct_of_every_project(self, sequence: EventSequence) -> None:
        for project_id in ("proj_api", "proj_web"):
            details = {"command": "npm test", "exit_code": 1}
            sequence.tool(tool="Shell", details=details, session=project_id, project_id=project_id)
        assert (sequence.one().project_id, len(sequence.one().supporting_events)) == ("proj_global", 2)

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

    @pytest.mark.parametrize(
        "by", [{"origin": "model-written"}, {"origin": "peer"}, {"door": "program"}, {"door": "import"}]
    )
    def test_words_that_are_not_the_user_s_promote_nothing(self, sequence: EventSequence, by: dict[str, str]) -> None:
        for number in range(9):
            sequence.tell("user_feedback", feedback_type="correction", content="删掉", session=f"s{number}", **by)
        assert sequence.one().status == "candidate"
