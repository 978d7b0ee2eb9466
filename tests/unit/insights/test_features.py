"""What one event says about the work."""

from typing import Any

import pytest

from sync.insights.features import action_of, outcome_of, stage_of, terms_of
from sync.lessons.corrections import normalise_text
from tests.support import event


class TestReading:
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
