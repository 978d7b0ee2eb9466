"""A row of the lessons' tables that cannot be understood stops nothing."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from sync.db.derived_tables import LESSON_TABLES
from sync.lessons.capture import LessonCapture
from sync.lessons.matching import MatchRequest
from sync.lessons.service import LessonService
from sync.redaction import Redactor
from tests.integration.lessons.chains import CHAINS, ToolCall
from tests.proof import first_in_test
from tests.support import Device, new_server, open_device

GARBAGE = ("'x'", "x'00ff'", "1.5", "-1", "cast(x'ff' as text)")
CHAIN = CHAINS[0]


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path, new_server(), single_threaded=True) as opened:
        yield opened


@pytest.fixture
def lessons(device: Device) -> LessonService:
    return LessonService(device.log, Redactor(), clock=device.clock, draft_erasure=lambda *_: ())


async def capture(lessons: LessonService, call: ToolCall, session: str) -> str:
    request = MatchRequest(call.tool, call.tool_input, output=call.output, session_id=session, exit_code=call.exit_code)
    return (await LessonCapture(lessons, Redactor()).capture(request, is_interrupted=False)).match.text


def corrupt_newest_row(path: Path, table: str, column: str, garbage: str) -> bool:
    """Put garbage into a column of one row; whether SQLite took it."""
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.IntegrityError), connection:
        key = ", ".join(row[1] for row in connection.execute(f"pragma table_info({table})") if row[5])
        order = key.replace(",", " desc,") + " desc"
        row = f"select {key} from {table} order by {order} limit 1"
        return connection.execute(f"update {table} set {column} = {garbage} where ({key}) = ({row})").rowcount > 0
    return False


@pytest.mark.parametrize("table", first_in_test(LESSON_TABLES))
@pytest.mark.parametrize("garbage", first_in_test(reversed(GARBAGE), 2))
async def test_lessons_are_found_and_learned_whatever_a_row_says(
    device: Device, lessons: LessonService, table: str, garbage: str
) -> None:
    for session in ("first", "second"):
        for call in CHAIN.solved():
            await capture(lessons, call, session)
    assert CHAIN.cure_text in await capture(lessons, CHAIN.failing, "shown")
    assert len(await lessons.all()) == 1
    path = device.log.database.path
    with closing(sqlite3.connect(path)) as connection:
        columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
    for number, column in enumerate(columns):
        if not corrupt_newest_row(path, table, column, garbage):
            continue
        await capture(lessons, CHAIN.failing, f"later {number}")
        await lessons.all()
        await lessons.of_failed_calls()
        await lessons.learn("error", {"error": {"message": f"another error {number}"}, "tags": ["a"]})
        if garbage == "cast(x'ff' as text)":  # it cannot be read at all, so the tables were made again
            assert CHAIN.cure_text in await capture(lessons, CHAIN.failing, f"again {number}")
