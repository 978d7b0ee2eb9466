"""Governance on 40 pairs of a note and a payload, labelled by hand."""

import pytest

from sync.notes.governance import Likeness, Relation, contradict, decide, must_ask, relation
from sync.notes.model import Action, Layer, NoteFile, Payload
from sync.notes.note_draft import new_note_text
from sync.notes.note_format import parse_note

SAME, CONFLICT, OTHER = Relation.SAME, Relation.CONFLICT, Relation.OTHER

# scene and choice of the note, scene and choice of the payload, the label, what the payload rejects
PAIRS: list[tuple[str, str, str, str, Relation, tuple[str, ...]]] = [
    ("选择数据库时", "用 PostgreSQL", "给项目选择数据库", "用 PostgreSQL", SAME, ()),
    ("选择数据库时", "用 PostgreSQL", "选择数据库时", "用 MySQL", CONFLICT, ()),
    ("选择数据库时", "用 PostgreSQL", "选择数据库", "用 SQLite", CONFLICT, ("用 PostgreSQL",)),
    ("选择数据库时", "用 PostgreSQL", "写提交说明时", "用英文", OTHER, ()),
    ("写提交说明时", "用英文写", "写提交说明", "用英文写", SAME, ()),
    ("写提交说明时", "用英文写", "写提交说明时", "用中文写", CONFLICT, ()),
    ("提交代码前", "先跑单元测试", "提交代码之前", "先跑完单元测试", SAME, ()),
    ("提交代码前", "先跑单元测试", "提交代码前", "不要跑单元测试", CONFLICT, ()),
    ("提交代码前", "先跑单元测试", "提交代码前", "更新变更日志", OTHER, ()),
    ("接口返回错误时", "统一返回错误码和提示", "接口返回错误", "返回统一的错误码和提示", SAME, ()),
    ("接口返回错误时", "统一返回错误码和提示", "前端组件命名时", "统一返回错误码和提示", OTHER, ()),
    ("前端状态管理", "使用 Redux", "前端状态管理", "使用 Zustand", CONFLICT, ()),
    ("前端状态管理", "使用 Redux", "前端的状态管理", "使用 Redux Toolkit", SAME, ()),
    ("部署到生产环境", "禁止手工改配置", "部署生产环境时", "不要手工改配置", SAME, ()),
    ("部署到生产环境", "禁止手工改配置", "部署到生产环境", "手工改配置", CONFLICT, ()),
    ("缓存用户数据", "避免放在本地存储", "缓存用户数据时", "放在本地存储", CONFLICT, ()),
    ("缓存用户数据", "避免放在本地存储", "缓存用户数据", "过期时间设为一小时", OTHER, ()),
    ("处理时间时", "一律用 UTC 存储", "处理时间", "一律用 UTC 存储", SAME, ()),
    ("处理时间时", "一律用 UTC 存储", "处理图片时", "一律压缩后存储", OTHER, ()),
    ("引用技能时", "用自然语言短引用", "引用技能", "写完整路径", CONFLICT, ("用自然语言短引用",)),
    ("choosing a database", "use PostgreSQL", "choosing a database", "use PostgreSQL", SAME, ()),
    ("choosing a database", "use PostgreSQL", "when choosing the database", "use MySQL", CONFLICT, ()),
    ("choosing a database", "use PostgreSQL", "choosing a database", "prefer SQLite", CONFLICT, ("use PostgreSQL",)),
    ("choosing a database", "use PostgreSQL", "naming a branch", "use the ticket number", OTHER, ()),
    ("writing commit messages", "write in English", "writing a commit message", "write in English", SAME, ()),
    (
        "writing commit messages",
        "keep subjects below 72 characters",
        "writing commit messages",
        "subjects stay below 72 characters",
        SAME,
        (),
    ),
    (
        "writing commit messages",
        "keep subjects below 72 characters",
        "writing commit messages",
        "reference the issue in the body",
        OTHER,
        (),
    ),
    (
        "before merging a pull request",
        "run the linter",
        "before merging a pull request",
        "run the linter first",
        SAME,
        (),
    ),
    (
        "before merging a pull request",
        "run the linter",
        "before merging pull requests",
        "never run the linter",
        CONFLICT,
        (),
    ),
    ("handling API errors", "return problem details", "handling errors of an API", "return problem details", SAME, ()),
    ("handling API errors", "return problem details", "styling buttons", "return problem details", OTHER, ()),
    (
        "storing tokens",
        "do not keep tokens in local storage",
        "storing tokens",
        "keep tokens in local storage",
        CONFLICT,
        (),
    ),
    (
        "storing tokens",
        "do not keep tokens in local storage",
        "storing tokens",
        "never keep tokens in local storage",
        SAME,
        (),
    ),
    ("storing tokens", "do not keep tokens in local storage", "rotating logs", "keep seven days", OTHER, ()),
    ("choosing a test framework", "use pytest", "choosing the test framework", "use pytest", SAME, ()),
    ("choosing a test framework", "use pytest", "choosing a test framework", "use unittest", CONFLICT, ()),
    ("formatting Python code", "use ruff format", "formatting Python code", "use black", CONFLICT, ()),
    ("formatting Python code", "use ruff format", "formatting SQL files", "indent by two", OTHER, ()),
    (
        "deploying on Fridays",
        "avoid deploying after noon",
        "deploying on Friday",
        "avoid deploying after noon",
        SAME,
        (),
    ),
    (
        "deploying on Fridays",
        "avoid deploying after noon",
        "deploying on Fridays",
        "deploying after noon",
        CONFLICT,
        (),
    ),
]


def note_of(scene: str, choice: str, *rejected: str) -> NoteFile:
    payload = Payload(scene, (choice, *rejected), choice, "choice", "high")
    text = new_note_text(payload, Layer.L1, note_id="MEM-1", now="2026-02-25T00:00:00.000Z", session="")
    return NoteFile("MEM-1", "memory/notes/MEM-1.md", "0" * 64, parse_note(text))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[1]} / {pair[3]}")
def test_a_labelled_pair_is_judged_as_labelled(pair: tuple[str, str, str, str, Relation, tuple[str, ...]]) -> None:
    scene, choice, other_scene, other_choice, label, rejected = pair
    payload = Payload(other_scene, (other_choice, *rejected), other_choice, "choice", "high")
    assert relation(payload, note_of(scene, choice)) is label


def test_there_are_forty_pairs_with_every_label() -> None:
    assert len(PAIRS) == 40
    assert {pair[4] for pair in PAIRS} == set(Relation)


def test_the_same_rule_in_other_words_is_the_same_by_meaning_and_equal_words_are_not_enough() -> None:
    paraphrase = Payload("挑选记录日志的依赖", ("日志统一走 structlog",), "日志统一走 structlog", "auto", "high")
    assert relation(paraphrase, note_of("选日志库", "用 structlog")) is OTHER
    assert relation(paraphrase, note_of("选日志库", "用 structlog"), Likeness(0.39, 0.75, 0.67)) is SAME
    queue = Payload("选择消息队列时", ("用 Redis",), "用 Redis", "auto", "high")
    assert relation(queue, note_of("选择缓存方案时", "用 Redis"), Likeness(0.46, 1.0, 0.68)) is OTHER


def test_two_notes_of_one_scene_with_opposite_conclusions_contradict_each_other() -> None:
    cursor, page = note_of("接口分页", "优先用游标", "用页码"), note_of("接口分页", "用页码", "优先用游标")
    assert contradict(cursor, page)
    assert not contradict(cursor, note_of("选择缓存方案时", "用 Redis"))


def test_the_source_decides_between_replace_and_veto() -> None:
    note = note_of("选择数据库时", "用 PostgreSQL", "用 MySQL")
    for source, action in (("choice", Action.REPLACE), ("remember", Action.REPLACE), ("auto", Action.VETO)):
        payload = Payload("选择数据库时", ("用 MySQL",), "用 MySQL", source, "high")  # type: ignore[arg-type]
        assert decide(payload, [note]).action is action


def test_only_a_new_note_of_high_confidence_is_written_silently() -> None:
    for confidence in ("low", "medium", "high"):
        payload = Payload("s", ("c",), "c", "remember", confidence)
        for action in (Action.NEW, Action.MERGE, Action.REPLACE):
            assert must_ask(payload, action) is not (action is Action.NEW and confidence == "high")
