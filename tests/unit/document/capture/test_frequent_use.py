"""Which words of the log are commands and tasks, and what came often enough."""

from datetime import date
from typing import Any

import pytest

from sync.document.capture.frequent_use import Use, UseCounter, uses_of
from sync.document.markdown.template import COMMON_COMMANDS, DAILY_TASKS
from sync.log.model import Event
from tests.support import event


def asked(question: str, day: int = 1, **payload: Any) -> Event:
    return event(
        day,
        type="exchange_recorded",
        local_date=date(2026, 1, day).isoformat(),
        payload={
            "question": question,
            "answer": "好的",
            **payload,
        },
    )


def ran(command: object, day: int = 1) -> Event:
    return event(
        day,
        type="tool_call",
        local_date=date(2026, 1, day).isoformat(),
        payload={
            "tool": "Shell",
            "details": {"command": command},
        },
    )


def commands(one: Event) -> list[str]:
    return [use.text for use in uses_of(one) if use.kind == "command"]


def tasks(one: Event) -> list[str]:
    return [use.text for use in uses_of(one) if use.kind == "task"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (ran("pnpm vitest"), ["pnpm vitest"]),
        (ran("  git   pull --rebase "), ["git pull --rebase"]),
        (ran("./deploy.sh prod"), ["./deploy.sh prod"]),
        (ran("ls -la"), []),
        (ran("cat a | wc"), []),
        (ran("make\nmake test"), []),
        (ran("x" * 81), []),
        (ran(None), []),
        (asked("帮我运行 `make test`"), ["make test"]),
        (asked("跑一下 pnpm test，看看结果"), ["pnpm test"]),
        (asked("Run `cargo build` and `cargo test`"), ["cargo build", "cargo test"]),
        (asked("run the tests again"), []),
        (asked("`make test` 是什么意思"), []),
    ],
)
def test_commands_are_those_that_ran_or_were_asked_for(given: Event, found: list[str]) -> None:
    assert commands(given) == found


@pytest.mark.parametrize(
    ("question", "is_task"),
    [
        ("写今天的日报", True),
        ("Write the daily report", True),
        ("帮我整理一下收件箱", True),
        ("日报怎么写", False),
        ("What is a report", False),
        ("我喜欢简洁的代码", False),
        ("以后都用中文回答", False),
        ("好的", False),
        ("帮我把这一段很长的话……" + "长" * 40 + "...", False),
    ],
)
def test_a_task_is_a_request_and_no_question_or_statement(question: str, *, is_task: bool) -> None:
    assert tasks(asked(question)) == ([question] if is_task else [])


def test_small_talk_and_erased_exchanges_are_no_tasks() -> None:
    assert tasks(asked("写今天的日报", in_document=False)) == []
    assert list(uses_of(event(1, type="exchange_recorded", payload={}))) == []


def test_the_day_and_courtesy_do_not_make_another_task() -> None:
    texts = ("写今天的日报", "帮我写日报", "请写一下周五的日报。")
    assert len({use.entry_id for text in texts for use in uses_of(asked(text))}) == 1


class TestCounter:
    def test_three_days_make_it_frequent_however_often_it_came_on_one(self) -> None:
        counter = UseCounter()
        for one in [ran("make", 1), ran("make", 1), ran("make", 2), *(ran("tox", 1) for _ in range(9))]:
            counter.add(one)
        assert counter.frequent == {}
        counter.add(asked("执行 `make`", 5))
        (use,) = counter.frequent.values()
        assert (use.counted_line, use.section) == ("- `make`（×4）", COMMON_COMMANDS)

    def test_a_task_keeps_its_first_words_and_shows_no_count(self) -> None:
        counter = UseCounter()
        for day, text in enumerate(("写今天的日报", "帮我写日报", "写日报"), start=1):
            counter.add(asked(text, day))
        (use,) = counter.frequent.values()
        assert (use.counted_line, use.section) == ("- 写今天的日报", DAILY_TASKS)

    def test_an_english_count(self) -> None:
        counter = UseCounter()
        for day in (1, 2, 3):
            counter.add(asked("Run `make`", day, language="en"))
        assert [use.counted_line for use in counter.frequent.values()] == ["- `make` (×3)"]

    def test_the_id_of_a_line_depends_on_its_words_alone(self) -> None:
        assert Use("command", "make", "make").entry_id == next(uses_of(ran("make", 9))).entry_id
