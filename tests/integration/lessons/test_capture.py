"""What is learned from tool calls: 30 chains with their cures, controls without one, and no false hints."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from sync.lessons.capture import CaptureResult, LessonCapture
from sync.lessons.matching import MatchRequest
from sync.lessons.service import LessonService
from sync.redaction import Redactor
from tests.integration.lessons.chains import CHAINS, Chain, ToolCall, replayed_log
from tests.support import Device, new_server, open_device

MOST_FALSE_HINTS: Final = 1  # in 100 calls


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path, new_server(), single_threaded=True) as opened:
        yield opened


@pytest.fixture
def lessons(device: Device) -> LessonService:
    return LessonService(device.log, Redactor(), clock=device.clock, draft_erasure=lambda *_: ())


async def run(lessons: LessonService, calls: Sequence[ToolCall], session: str) -> list[CaptureResult]:
    capture = LessonCapture(lessons, Redactor())
    return [
        await capture.capture(
            MatchRequest(call.tool, call.tool_input, output=call.output, session_id=session, exit_code=call.exit_code),
            is_interrupted=False,
        )
        for call in calls
    ]


async def test_each_chain_is_a_candidate_with_its_cure_and_no_repeated_failure_is_without_it(
    lessons: LessonService,
) -> None:
    assert len(CHAINS) == 30
    for number, chain in enumerate(CHAINS):
        mined = [name for result in await run(lessons, chain.solved(), f"s{number}") for name in result.mined]
        assert len(mined) == 1, chain.name
        lesson = await lessons.find(mined[0])
        assert (lesson.state, lesson.content["solution"]["actions"]) == ("candidate", [chain.cure_text])
    for chain in CHAINS:
        (again,) = await run(lessons, [chain.failing], f"again {chain.name}")
        assert chain.cure_text in again.match.text, chain.name


@pytest.mark.parametrize("chain", CHAINS[:6], ids=lambda chain: chain.name)
async def test_nothing_is_learned_from_a_control(lessons: LessonService, chain: Chain) -> None:
    for name, calls in chain.controls():
        await run(lessons, calls, name)
        assert [one for one in await lessons.all() if one.state != "held_back"] == [], name
        (again,) = await run(lessons, [chain.failing], f"after {name}")
        assert again.match.lesson_id is None, name


async def test_a_replayed_log_of_a_hundred_calls_gives_at_most_one_false_hint(lessons: LessonService) -> None:
    for number, chain in enumerate(CHAINS):
        await run(lessons, chain.solved(), f"s{number}")
    calls = replayed_log()
    assert len(calls) == 100
    hints = [
        (call, result.match.text)
        for number, call in enumerate(calls)
        for result in await run(lessons, [call], f"replay {number // 5}")
        if result.match.lesson_id is not None
    ]
    assert len(hints) <= MOST_FALSE_HINTS, hints
