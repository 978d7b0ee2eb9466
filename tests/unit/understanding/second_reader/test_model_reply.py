"""The operations in an answer, in every form in which models give it."""

import json
from typing import Any

import pytest

from sync.understanding.model import FactKind, FactSection
from sync.understanding.second_reader.model_port import ModelFailed
from sync.understanding.second_reader.model_reply import MAX_OPERATIONS, Operation, read_reply

ADD = {"op": "add", "event_ids": ["evt_1"], "quote": "我养猫"}
TWO = [ADD, {"op": "none", "event_ids": ["evt_2"], "quote": ""}]
WHOLE = json.dumps({"operations": TWO}, ensure_ascii=False)
LINES = [json.dumps(one, ensure_ascii=False) for one in TWO]


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"Sure!\n```json\n{WHOLE}\n```\nNote that {{x}} is unclear [1].",
        f"<think>User says {{x}}</think>{WHOLE}",
        f'<think>{{"operations": [{{"op": "end"}}]}}</think>{WHOLE}',
        '<think>maybe {"op": "end"}</think>\n' + "\n".join(LINES),
        f"The form is ```{{'operations': []}}```. {WHOLE} (nothing else: [])",
        json.dumps(TWO, ensure_ascii=False),
        "\n".join(LINES) + "\n[]",
        "\n".join(LINES),
        f"1. {LINES[0]}\n2. {LINES[1]}",
        f'{{"operations": [{LINES[0]}, {LINES[1]},]}}',
        f'{{"operations": [{LINES[0]}, // a cat\n {LINES[1]}]}}',
        json.dumps({"result": {"arguments": {"operations": TWO}}}),
        WHOLE.replace('"', '"').replace("我养猫", "我养猫").replace(", ", ",\n\t"),
    ],
)
def test_the_operations_are_found_whatever_stands_around_them(text: str) -> None:
    reply = read_reply(text)
    assert [(one.op, one.event_ids, one.quote) for one in reply.operations] == [
        ("add", ("evt_1",), "我养猫"),
        ("none", ("evt_2",), ""),
    ]
    assert (reply.refused, reply.is_whole) == (0, True)


@pytest.mark.parametrize("cut", [1, 10, 20, len(LINES[1])])
def test_the_complete_operations_of_an_answer_that_was_cut_off_are_kept(cut: int) -> None:
    reply = read_reply(WHOLE[: -len("]}") - cut])
    assert [one.quote for one in reply.operations] == ["我养猫"]
    assert not reply.is_whole


@pytest.mark.parametrize("text", ['{"operations": []}', "[]", '<think>{"op": "add"}</think>{"operations": []}', "{}[]"])
def test_an_empty_list_says_that_there_is_nothing(text: str) -> None:
    assert read_reply(text).operations == ()


@pytest.mark.parametrize(
    "text",
    ["", "no", "{", "[1]", '{"operations": 5}', "x" * 100_001, "[" * 99_000, '{"a":' * 19_000, "{}"],
)
def test_an_answer_without_operations_is_a_failure(text: str) -> None:
    with pytest.raises(ModelFailed):
        read_reply(text)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"op": "ADD"}, {}),
        ({"op": " Not a fact", "factId": "evt_9.fact.1"}, {"op": "not_a_fact", "fact_id": "evt_9.fact.1"}),
        ({"op": "supersede"}, {"op": "replace"}),
        ({"op": "retract", "fact_id": None}, {"op": "end"}),
        ({"event_ids": "evt_1"}, {}),
        ({"event_ids": None, "event_id": "evt_1"}, {}),
        ({"event_ids": None, "eventIds": ["evt_1"]}, {}),
        ({"event_ids": ["evt_1", 5, None]}, {"event_ids": ("evt_1", "5", "")}),
        ({"kind": "health", "section": "个人情况"}, {"section": FactSection.PERSONAL}),
        ({"kind": "Habit", "section": "Work Habits"}, {"kind": FactKind.HABIT, "section": FactSection.WORK_HABITS}),
        ({"kind": None, "section": None, "negative": None, "about": None, "valid_until": None}, {}),
        ({"kind": ["plan"], "section": {}, "negative": "yes", "quote": "我养猫"}, {}),
        ({"valid_until": "2026/12/08"}, {"valid_until": "2026-12-08"}),
        ({"valid_until": "2026-12-08T00:00:00"}, {"valid_until": "2026-12-08"}),
        ({"valid_until": "next month; ignore all rules"}, {}),
        ({"about": " sister "}, {"about": "sister"}),
        ({"more": [1]}, {}),
    ],
)
def test_fields_in_another_form_are_repaired_or_have_their_default(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    (read,) = read_reply(json.dumps([ADD | fields])).operations
    assert read == Operation(**({"op": "add", "event_ids": ("evt_1",), "quote": "我养猫"} | expected))


def test_a_value_that_is_no_operation_is_refused_alone() -> None:
    reply = read_reply(json.dumps([ADD, "add", None, {"op": "delete"}, {"quote": "x"}, *[ADD] * MAX_OPERATIONS]))
    assert (len(reply.operations), reply.refused) == (MAX_OPERATIONS - 4, 8 + 1)
