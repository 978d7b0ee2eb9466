"""Daily records, decided: pages, summaries, commands, options, repeats, what is due. No file, no clock."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.daily import config
from sync.daily.conversation.command_parser import (
    CommandKind,
    decide_saving,
    is_confirmation,
    last_save_request,
    parse_command,
    should_recall,
)
from sync.daily.conversation.extractive_summary import SummaryTurn, count_rounds, quality, summarise
from sync.daily.conversation.keywords import is_same_text, keywords, similarity
from sync.daily.model import Code, Content, Record, normalised_content, parse_time
from sync.daily.pages.indexes import DayFile, keywords_json, summary_md
from sync.daily.pages.numbering import next_number, page_numbers
from sync.daily.pages.page_diff import PageBase, diff_page
from sync.daily.pages.page_format import DayPage, PageSession, line_ranges, render, split_page
from sync.daily.pages.page_format import parse as parse_page
from sync.daily.records.changes import expire_record, merge_records
from sync.daily.records.maintenance import (
    RecordMerge,
    expired_records,
    find_repeats,
    match_records,
    review_is_due,
    review_questions,
)
from sync.daily.records.reducer import DailyRecords
from sync.errors import InvalidInput, TooLarge
from sync.log.event_types import SESSION_EDITED, SESSION_MARKED, SESSION_REMOVED

DAY = "2026-01-29"
KNOWN = ("rec_1", "rec_2")
SEED = """# 2026-01-29 对话记忆

## Session 1 - 10:30:45

### 主题
Memory Skill 设计讨论

### 关键信息
- 用户希望创建长期记忆功能
- 存储位置：.cursor/skills/memories/

### 代码/配置
```json
{
  "storage": "project-first",
  "auto_save": true
}
```

### 标签
#skill #memory #design

---

## Session 2 - 14:20:00

### 主题
重构
"""
FIRST = Content(
    "Memory Skill 设计讨论",
    ("用户希望创建长期记忆功能", "存储位置：.cursor/skills/memories/"),
    (Code("json", '{\n  "storage": "project-first",\n  "auto_save": true\n}'),),
    ("skill", "memory", "design"),
)


def record(number: int = 1, topic: str = "题目", *, day: str = DAY, **more: Any) -> Record:
    values: dict[str, Any] = {
        "record_id": f"rec_{day}_{number}",
        "event_id": f"evt_{number}",
        "date": day,
        "time": f"10:{number:02}:00",
        "number": number,
        "content": more.pop("content", None) or normalised_content(topic, more.pop("facts", ())),
        "project_id": "proj_global",
        "project_path": None,
        "device_id": "device-a",
    }
    return Record(**{**values, **more})


def talk(*said: str) -> list[SummaryTurn]:
    """What a person and a model said in turn."""
    return [SummaryTurn("user" if at % 2 == 0 else "assistant", text) for at, text in enumerate(said)]


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)
CONTENTS = st.builds(
    normalised_content,
    WORDS,
    st.lists(WORDS, max_size=4),
    st.lists(st.builds(Code, st.sampled_from(["", "py", "c++"]), st.text("ab`~#-\n 中", max_size=40)), max_size=3),
    st.lists(WORDS, max_size=4),
)
NOTES = st.lists(CONTENTS, min_size=1, max_size=4).map(
    lambda found: tuple(PageSession(at, "10:30:45", each) for at, each in enumerate(found, start=1))
)


class TestPage:
    def test_it_is_the_file_of_the_seed(self) -> None:
        page = DayPage(DAY, (PageSession(1, "10:30:45", FIRST), PageSession(2, "14:20:00", normalised_content("重构"))))
        assert render(page) == SEED
        assert parse_page(SEED) == page

    @given(NOTES)
    def test_what_is_written_is_read_as_it_was(self, notes: tuple[PageSession, ...]) -> None:
        assert parse_page(render(DayPage(DAY, notes))).sessions == notes

    @given(NOTES)
    def test_line_ranges_are_those_of_the_file(self, notes: tuple[PageSession, ...]) -> None:
        page = DayPage(DAY, notes)
        lines = render(page).split("\n")
        for number, (first, last) in line_ranges(page).items():
            assert lines[first - 1] == f"## Session {number} - 10:30:45"
            assert lines[last - 1].strip()
            assert last == len(lines) - 1 or lines[last : last + 3] == ["", "---", ""]

    @pytest.mark.parametrize(
        "wrong",
        [
            "",
            "# 别的标题\n",
            SEED + "\n---\n\n多余的一行\n",
            SEED.replace("### 标签", "### 备注"),
            SEED.replace("Session 2", "Session 1"),
            SEED.replace("14:20:00", "25:00:00"),
            SEED.replace("14:20:00", "1４:20:00"),
            SEED.replace("Session 2", "Session 2２"),
            SEED.replace("2026", "２０２６"),
            SEED.replace("}\n```", "}"),
            SEED.replace("#skill", "skill"),
            SEED.replace("### 主题\n重构", "### 关键信息\n- 无题"),
        ],
    )
    def test_what_no_record_can_hold_is_not_understood(self, wrong: str) -> None:
        with pytest.raises(InvalidInput):
            parse_page(wrong)

    @pytest.mark.parametrize("wrong", ["1０:30:45", "10:30:45\n", "24:00:00", "10:30"])
    def test_a_time_is_written_in_digits_that_everybody_reads(self, wrong: str) -> None:
        assert parse_time("10:30:45") == "10:30:45"
        with pytest.raises(InvalidInput):
            parse_time(wrong)

    def test_a_page_beyond_its_size_goes_on_in_another_and_no_session_is_divided(self) -> None:
        notes = tuple(PageSession(at, "10:00:00", normalised_content(f"题目 {at}", ["长" * 300])) for at in range(1, 8))
        pieces = split_page(DayPage(DAY, notes), 2_500)
        assert len(pieces) > 1
        assert tuple(note for piece in pieces for note in piece.sessions) == notes
        assert all(len(render(piece).encode()) <= 2_500 for piece in pieces)

    def test_a_record_beyond_its_size_is_refused(self) -> None:
        with pytest.raises(TooLarge):
            normalised_content("题目", [], [Code("", "x" * 20_000)])


class TestHand:
    base = PageBase(SEED, {1: "rec_1", 2: "rec_2"})

    def test_nothing_changed_is_nothing(self) -> None:
        assert diff_page([self.base], SEED.replace("\n\n", "\n\n\n"), DAY, KNOWN).changes == ()

    def test_an_edit_names_its_parts_a_deletion_its_record_an_addition_neither(self) -> None:
        edited = SEED.replace("用户希望", "他希望").replace("#design", "#设计")
        (edit,) = diff_page([self.base], edited, DAY, KNOWN).changes
        assert (edit.record_id, edit.parts) == ("rec_1", ("facts", "tags"))
        without = SEED[: SEED.index("\n---")]
        (removed,) = diff_page([self.base], without, DAY, KNOWN).changes
        assert (removed.record_id, removed.session) == ("rec_2", None)
        more = SEED + "\n---\n\n## Session 3 - 15:00:00\n\n### 主题\n手写\n"
        (added,) = diff_page([self.base], more, DAY, KNOWN).changes
        assert added.record_id is None
        assert added.session is not None
        assert added.session.content.topic == "手写"

    def test_marks_are_written_and_taken_away(self) -> None:
        (marked,) = diff_page([self.base], SEED + "\n### 标记\n重要、过时\n", DAY, KNOWN).changes
        assert marked.marks == (("important", True), ("outdated", True))

    def test_the_nearest_version_is_the_base(self) -> None:
        """A killed writer leaves an older page than its checkpoint: that is no manual edit."""
        newer = PageBase(SEED.replace("重构", "重构二"), self.base.record_ids)
        assert diff_page([newer, self.base], SEED, DAY, KNOWN).changes == ()

    def test_what_a_page_that_was_never_written_has_was_not_deleted(self) -> None:
        """Session 1 was taken away by hand; a page with a new one was noted, and the disk failed."""
        first = SEED[: SEED.index("\n---")]
        never = PageBase(SEED[: SEED.index("## Session 1")] + SEED[SEED.index("## Session 2") :], {2: "rec_2"})
        emptied = SEED[: SEED.index("## Session 1")]
        (told,) = diff_page([never, PageBase(first, {1: "rec_1"})], emptied, DAY, ("rec_2",)).changes
        assert told.record_id == "rec_1"

    def test_an_addition_that_has_its_record_already_is_compared_as_it_was_begun(self) -> None:
        """The import was killed before it was confirmed."""
        more = SEED + "\n---\n\n## Session 3 - 15:00:00\n\n### 主题\n手写\n"
        begun = PageBase(more, {3: "rec_3"})
        told = diff_page([self.base], more, DAY, KNOWN, begun)
        assert (told.changes, dict(told.record_ids)) == ((), {1: "rec_1", 2: "rec_2", 3: "rec_3"})
        (edit,) = diff_page([self.base], more.replace("手写", "改过"), DAY, KNOWN, begun).changes
        assert (edit.record_id, edit.parts) == ("rec_3", ("topic",))
        (removed,) = diff_page([self.base], SEED, DAY, KNOWN, begun).changes
        assert (removed.record_id, removed.session) == ("rec_3", None)

    def test_an_imported_edit_is_compared_as_it_was_begun_even_if_its_record_is_gone(self) -> None:
        edited = SEED.replace("用户希望", "他希望")
        begun = PageBase(edited, {1: "rec_1", 2: "rec_2"}, {1: "evt_1"})
        assert diff_page([self.base], edited, DAY, ("rec_2",), begun).changes == ()
        (edit,) = diff_page([self.base], edited.replace("他希望", "我希望"), DAY, KNOWN, begun).changes
        assert (edit.record_id, edit.parts) == ("rec_1", ("facts",))

    def test_an_edit_that_was_not_imported_is_an_edit_even_if_an_import_had_begun(self) -> None:
        edited = SEED.replace("用户希望", "他希望")
        (edit,) = diff_page([self.base], edited, DAY, KNOWN, PageBase(edited, {2: "rec_2"})).changes
        assert (edit.record_id, edit.parts) == ("rec_1", ("facts",))

    @pytest.mark.parametrize("wrong", [SEED.replace("14:20", "14:21"), SEED.replace(DAY, "2026-01-30")])
    def test_an_edit_of_time_or_project_is_refused(self, wrong: str) -> None:
        with pytest.raises(InvalidInput):
            diff_page([self.base], wrong, DAY, KNOWN)


class TestSummary:
    chinese = talk(
        "你好，帮我设计一个记忆功能，存储位置在 .cursor/skills/memories/",
        "好的。可以采用关键词加语义搜索的方式检索。",
        "我决定自动保存，端口用 8080。",
        '配置如下：\n```json\n{"auto_save": true}\n```\n这样就可以了。',
        "可以跳过吗？",
        "可以。",
    )
    english = talk(
        "Please help me refactor the REST API",
        "Sure. Which framework do you want?",
        "We decided to use FastAPI instead of Flask because of async support.",
        "Good choice. The service must listen on port 8080.",
        "I prefer pytest for tests.",
        "Noted.",
    )

    def test_chinese(self) -> None:
        found = summarise(self.chinese)
        assert "记忆功能" in found.topic
        assert not found.topic.startswith(("你好", "帮我"))
        assert any("8080" in fact for fact in found.facts)
        assert any("关键词" in fact for fact in found.facts)
        assert not any(fact.endswith("？") for fact in found.facts)
        assert found.code == (Code("json", '{"auto_save": true}'),)
        assert 0 < len(found.tags) <= 6

    def test_english(self) -> None:
        found = summarise(self.english)
        assert "refactor the REST API" in found.topic
        assert any("FastAPI" in fact for fact in found.facts)
        assert any("pytest" in fact for fact in found.facts)
        assert not any("Which framework" in fact for fact in found.facts)
        assert {"api", "rest"} & set(found.tags)

    def test_it_is_the_same_for_the_same_turns_and_says_nothing_of_its_own(self) -> None:
        for turns in (self.chinese, self.english):
            found = summarise(turns)
            assert found == summarise(list(turns))
            said = " ".join(" ".join(turn.text.split()) for turn in turns)
            assert all(fact.rstrip("…") in said for fact in (found.topic, *found.facts))

    def test_code_is_found_whatever_ends_its_lines(self) -> None:
        for end in ("\r\n", "\r"):
            typed = [SummaryTurn(turn.role, turn.text.replace("\n", end)) for turn in self.chinese]
            assert summarise(typed) == summarise(self.chinese)

    @given(st.lists(st.builds(SummaryTurn, st.sampled_from(["user", "assistant"]), st.text(max_size=80)), max_size=6))
    def test_anything_said_gives_a_page_that_can_be_read(self, turns: list[SummaryTurn]) -> None:
        page = DayPage(DAY, (PageSession(1, "10:00:00", summarise(turns)),))
        assert parse_page(render(page)) == page
        assert 0 <= quality(summarise(turns), turns) <= 1

    def test_of_two_sentences_that_say_the_same_the_later_holds_unless_a_model_only_repeats_a_person(self) -> None:
        red, again = "前端页面的按钮统一使用红色主题的样式", "前端页面的按钮，统一使用红色主题样式吧"
        begun = "我们来定一下前端页面的样式规范", "好的。", "好", "好的。", "行", "好的。"
        assert summarise(talk(*begun, red, "好的。", again, "好的。")).facts == (again,)
        assert summarise(talk(*begun, red, again)).facts == (red,)

    def test_quality_tells_a_good_summary_from_a_poor_one(self) -> None:
        good = quality(summarise(self.english), self.english)
        poor = quality(normalised_content("对话记录"), self.english)
        repeats = quality(
            normalised_content("REST API", ["use FastAPI now", "use FastAPI now!", "use FastAPI, now"]), self.english
        )
        assert good > 0.6 > repeats > poor
        assert poor < 0.4

    def test_words(self) -> None:
        assert keywords(["重构 API 的记忆模块，记忆模块很重要", "api"], 3)[:2] == ["api", "记忆模块"]
        assert similarity("今天去吃火锅", "今天去吃火锅") == 1.0
        assert similarity("今天去吃火锅", "refactor") == 0.0


COMMANDS = [
    ("记住这个", CommandKind.SAVE, ""),
    ("save this", CommandKind.SAVE, ""),
    ("Remember this!", CommandKind.SAVE, ""),
    ("好的，记住这个，谢谢", CommandKind.SAVE, ""),
    ("记住这个：端口是 8080", CommandKind.SAVE, "端口是 8080"),
    ("不要保存", CommandKind.SKIP, ""),
    ("这次不保存。", CommandKind.SKIP, ""),
    ("don't save", CommandKind.SKIP, ""),
    ("Don’t save this conversation.", CommandKind.SKIP, ""),
    ("搜索记忆: 火锅", CommandKind.SEARCH, "火锅"),
    ("搜索记忆：API: v2", CommandKind.SEARCH, "API: v2"),
    ("search memory: Hot Pot", CommandKind.SEARCH, "Hot Pot"),
    ("搜索记忆 火锅", CommandKind.SEARCH, "火锅"),
    ("请搜索一下我的记忆 API v2", CommandKind.SEARCH, "API v2"),
    ("Search my memory for Hot Pot", CommandKind.SEARCH, "Hot Pot"),
    ("搜索记忆", CommandKind.SEARCH, ""),
    ("查看今日记忆", CommandKind.SHOW, ""),
    ("查看记忆", CommandKind.SHOW, ""),
    ("today's memory", CommandKind.SHOW, ""),
    ("show today's memory", CommandKind.SHOW, ""),
    ("删除记忆: 2026-01-29 #1", CommandKind.DELETE, "2026-01-29 #1"),
    ("delete memory: hot pot", CommandKind.DELETE, "hot pot"),
    ("清理旧记忆", CommandKind.CLEAN, ""),
    ("clean up old memories", CommandKind.CLEAN, ""),
    ("清理旧记忆: 确认", CommandKind.CLEAN, "确认"),
    ("clean up old memories confirm", CommandKind.CLEAN, "confirm"),
    ("记忆设置", CommandKind.SETTINGS, ""),
    ("memory settings", CommandKind.SETTINGS, ""),
    ("记忆设置: recording.auto_save=false", CommandKind.SETTINGS, "recording.auto_save=false"),
    ("这是敏感对话", CommandKind.SENSITIVE, ""),
    ("mark this as sensitive", CommandKind.SENSITIVE, ""),
]


class TestCommands:
    @pytest.mark.parametrize(("text", "kind", "about"), COMMANDS)
    def test_each_is_understood_in_both_languages(self, text: str, kind: CommandKind, about: str) -> None:
        found = parse_command(text)
        assert found is not None
        assert (found.kind, found.argument) == (kind, about)

    @pytest.mark.parametrize(
        "text",
        [
            "把按钮改成不要保存草稿",
            "How do I save this file to disk",
            "我想搜索记忆里的内容",
            "search memory leaks in the parser",
            "删除记忆 火锅",
            "删除记忆",
            "today's memory usage is high",
            "",
            "：",
        ],
    )
    def test_ordinary_words_are_no_command(self, text: str) -> None:
        assert parse_command(text) is None

    @given(st.text(max_size=200))
    def test_nothing_stops_it(self, text: str) -> None:
        parse_command(text)
        should_recall(text, is_first=False)

    def test_confirming(self) -> None:
        assert is_confirmation("确认")
        assert is_confirmation("Confirm")
        assert not is_confirmation("")

    @pytest.mark.parametrize(
        ("message", "is_first", "expected"),
        [
            ("写一个函数", True, True),
            ("写一个函数", False, False),
            ("之前的端口是多少", False, True),
            ("上次说到哪了", False, True),
            ("我们讨论过这个", False, True),
            ("what did we decide last time?", False, True),
            ("as we discussed", False, True),
            ("write a function", False, False),
            ("  ", True, False),
        ],
    )
    def test_when_to_recall(self, message: str, *, is_first: bool, expected: bool) -> None:
        assert should_recall(message, is_first=is_first) is expected

    def saving(self, turns: list[SummaryTurn], *, auto: bool = True) -> str:
        found = decide_saving(turns, min_rounds=3, auto_save=auto)
        return found.reason if found.is_wanted else f"not: {found.reason}"

    def test_when_to_save(self) -> None:
        three = talk("一一", "二二", "三三", "四四", "五五", "六六")
        assert count_rounds(three) == 3
        assert self.saving(three) == "ended"
        assert self.saving(three[:4]) == "not: too_short"
        assert self.saving(three, auto=False) == "not: auto_save_off"
        assert self.saving([*three, SummaryTurn("user", "不要保存")]) == "not: skip"
        assert self.saving([*three, SummaryTurn("assistant", "不要保存")]) == "ended", "a model decides nothing"
        assert self.saving(talk("记住这个"), auto=False) == "asked"
        assert self.saving(talk("不要保存", "好", "算了，记住这个")) == "asked", "the last word holds"
        assert last_save_request(talk("这是敏感对话", "好", "记住这个")) is CommandKind.SENSITIVE


class TestConfig:
    def test_the_seed_s_own_file_with_its_comments_holds_the_defaults(self) -> None:
        text = """{"version": "1.0", // a comment
          "storage": {"location": "project-first", "retention_days": 90, "max_file_size_mb": 10},
          "recording": {"auto_save": true, "min_conversation_length": 3}, "note": "https://kept"}"""
        value, raw = config.parse_config(text)
        assert value == config.DEFAULT_CONFIG
        assert raw["note"] == "https://kept"

    def test_one_option_is_changed_and_what_is_not_known_stays(self) -> None:
        raw = config.with_option({"future": 1, "recording": {"x": 2}}, "recording.auto_save", value=False)
        assert raw == {"future": 1, "recording": {"x": 2, "auto_save": False}}
        assert not config.parse_config(config.to_text(raw))[0].recording.auto_save

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("nothing.of_it", 1),
            ("version", "2"),
            ("storage.location", "elsewhere"),
            ("recording.auto_save", "maybe"),
            ("retrieval.max_results", 0),
            ("retrieval.time_decay_rate", 2),
        ],
    )
    def test_what_is_no_option_or_no_value_is_refused_by_name(self, option: str, value: Any) -> None:
        with pytest.raises(InvalidInput):
            config.with_option({}, option, value)

    @pytest.mark.parametrize("text", ["{", "[]", '{"storage": {"location": 1}}', "[" * 100_000])
    def test_an_invalid_file_is_refused_with_a_reason(self, text: str) -> None:
        with pytest.raises(InvalidInput):
            config.parse_config(text)


class TestTidying:
    def test_repeats_become_one_and_nothing_is_lost(self) -> None:
        one = record(1, "讨论火锅店的选址", facts=["选在西湖边", "预算 20 万"])
        two = record(2, "讨论火锅店的选址", facts=["选在西湖边。", "开业在五月"])
        other = record(3, "重构登录模块", facts=["改用 JWT"])
        (fold,) = find_repeats([one, two, other])
        assert (fold.target, fold.repeats) == (one, (two,))
        assert fold.content.facts == ("选在西湖边", "预算 20 万", "开业在五月")
        assert find_repeats([one, replace(two, project_id="proj_other")]) == [], "projects are apart"

    def test_repeats_stay_where_the_record_that_was_to_take_them_in_went_meanwhile(self) -> None:
        one, two = (
            record(1, "讨论火锅店的选址", facts=["选在西湖边"]),
            record(2, "讨论火锅店的选址", facts=["开业在五月"]),
        )
        fold = RecordMerge(one, replace(one.content, facts=("选在西湖边", "开业在五月")), (two,))
        assert merge_records(fold, DailyRecords({two.record_id: two})) == []
        assert [deed.event_type for deed in merge_records(fold, DailyRecords({one.record_id: one}))] == [SESSION_EDITED]
        both = merge_records(fold, DailyRecords({one.record_id: one, two.record_id: two}))
        assert [(deed.event_type, deed.record.record_id) for deed in both] == [
            (SESSION_EDITED, one.record_id),
            (SESSION_REMOVED, two.record_id),
        ]

    def test_what_went_or_was_put_away_meanwhile_is_passed_over(self) -> None:
        one = record(1)
        (deed,) = expire_record(one.record_id, DailyRecords({one.record_id: one}))
        assert (deed.event_type, deed.payload["mark"], deed.payload["marks"]) == (
            SESSION_MARKED,
            "expired",
            ["expired"],
        )
        assert expire_record(one.record_id, DailyRecords(removed={one.record_id: one})) == []
        assert expire_record(one.record_id, DailyRecords({one.record_id: replace(one, marks=("expired",))})) == []

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("生产环境的数据库端口最后决定改成 5432", "生产环境的数据库端口最后决定改成 5433"),
            ("前端跑在 3000，接口跑在 8080", "前端跑在 8080，接口跑在 3000"),
            ("会议最后改到下周四下午三点开始", "会议最后改到下周四下午四点开始"),
            ("新的服务以后部署在 Tokyo 机房", "新的服务以后部署在 Osaka 机房"),
            ("以后所有的脚本都要使用空格缩进", "以后所有的脚本都不要使用空格缩进"),
            ("we should always squash the commits here", "we should not always squash the commits here"),
            ("后端的服务以后统一使用 C# 编写并且部署在阿里云上", "后端的服务以后统一使用 C++ 编写并且部署在阿里云上"),
            ("温度阈值以后统一设为 -5 度时报警", "温度阈值以后统一设为 5 度时报警"),
            ("接口的延迟要求统一定为 > 5 ms", "接口的延迟要求统一定为 < 5 ms"),
            ("税率以后统一按照 1.5 计算并且写进配置", "税率以后统一按照 1,5 计算并且写进配置"),
            (
                "后端接口的负责人是张伟，每周一上午开评审会",
                "后端接口的负责人是李娜，每周一上午开评审会",
            ),
            (
                "生产环境的数据库缓存以后一律启用并且保留七天的日志",
                "生产环境的数据库缓存以后一律禁用并且保留七天的日志",
            ),
            ("生产环境的数据库以后开放远程连接的端口", "禁止生产环境的数据库以后开放远程连接的端口"),
            ("前端页面的按钮统一使用红色主题的样式", "前端页面的按钮统一使用蓝色主题的样式"),
            ("Для этого проекта API v2 всегда сервер", "Для этого проекта API v2 всегда клиент"),
        ],
    )
    def test_what_differs_in_one_word_or_the_sign_of_a_number_is_no_repeat(self, one: str, other: str) -> None:
        assert similarity(one, other) >= 0.6, "else this shows nothing"
        first, second = record(1, "约定", facts=["甲", one]), record(2, "约定", facts=["甲", other])
        (fold,) = find_repeats([first, second])
        assert fold.content.facts == ("甲", one, other)
        assert find_repeats([record(1, one), record(2, other)]) == []
        said = talk("我们来定一下项目的约定", "好的。", f"决定：{one}", "好的。", f"决定：{other}", "好的。")
        assert summarise(said).facts[-2:] == (f"决定：{one}", f"决定：{other}")

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("我喜欢喝绿茶", "我喜欢喝绿茶。"),
            ("端口用 8080，地址不变", "端口用8080 地址不变！"),
            ("选在西湖边的店", "选在西湖边店了"),
            ("Use FastAPI now", "use FastAPI, now!"),
            ("温度设为 -5 度", "温度设为 −5 度"),
            ("👍", " 👍 "),
        ],
    )
    def test_punctuation_spaces_and_particles_make_no_other_fact(self, one: str, other: str) -> None:
        assert is_same_text(one, other)

    def test_what_is_due(self) -> None:
        old, new = record(1, day="2025-10-01"), record(1, day="2026-01-28")
        important = record(2, day="2025-10-01", marks=("important",))
        assert expired_records([old, new, important], DAY, 90) == [old]
        assert expired_records([old, new], DAY, -1) == []

    def test_what_to_ask_a_person(self) -> None:
        outdated = record(1, marks=("outdated",))
        doubtful = record(2, quality=0.2)
        old = record(3, day="2025-12-01", quality=0.9)
        seen = record(4, day="2025-12-01", quality=0.2, reviewed_on="2026-01-20")
        fine = record(5, quality=0.9)
        asked = review_questions([fine, old, seen, doubtful, outdated], DAY)
        assert [(item.record, item.why) for item in asked] == [
            (outdated, "outdated"),
            (doubtful, "doubtful"),
            (old, "old"),
        ]
        assert "还对吗" in asked[2].text(chinese=True)
        assert review_is_due([old], DAY)
        assert not review_is_due([old, replace(seen, reviewed_on="2026-01-25")], DAY), "asked days ago"
        assert not review_is_due([fine], DAY)

    def test_which_record_is_meant(self) -> None:
        one, two = record(1, "火锅"), record(2, "爬山", facts=["周末去黄山"])
        both = [one, two]
        assert match_records(both, one.record_id) == [one]
        assert match_records(both, f"{DAY} #2") == match_records(both, f"{DAY} session 2") == [two]
        assert match_records(both, DAY) == both
        assert match_records(both, "黄山") == [two]
        assert match_records(both, "没有") == match_records(both, "") == []


class TestNumbers:
    """On a page; places are named after their projects here, `None` for the home."""

    def test_a_number_is_kept_and_the_next_goes_behind_all_that_were_given(self) -> None:
        every = [record(1), record(2), record(7), record(3)]
        assert list(page_numbers(every, str).values()) == [1, 2, 7, 3]
        assert next_number(every, str, None, DAY) == 8
        assert next_number(every, str, None, "2026-01-30") == 1
        assert next_number(every, str, "/家", DAY) == 1

    def test_of_two_with_one_number_the_first_keeps_it_and_nothing_made_later_moves_the_other(self) -> None:
        every = [record(1), record(2), record(1, record_id="rec_late")]
        assert page_numbers(every, str)["rec_late"] == 3
        for _ in range(5):
            made = next_number(every, str, None, DAY)
            every.append(record(made, record_id=f"rec_made_{made}"))
            assert page_numbers(every, str)["rec_late"] == 3
        assert [*page_numbers(every, str).values()] == [1, 2, 3, 4, 5, 6, 7, 8]

    def test_what_did_not_know_of_the_other_keeps_its_number_too(self) -> None:
        """A third device continued after the second record, before it received the one between."""
        every = [record(1), record(2), record(1, record_id="rec_late"), record(3)]
        assert [*page_numbers(every, str).values()] == [1, 2, 4, 3]

    def test_days_and_places_count_apart(self) -> None:
        every = [record(1), record(1, day="2026-01-30"), record(1, record_id="rec_p", project_path="/家")]
        assert [*page_numbers(every, str).values()] == [1, 1, 1]
        assert page_numbers(every, lambda _: "the home")["rec_p"] == 2


def test_the_index_and_the_summary_list_the_sessions_of_the_pages() -> None:
    one = record(1, "火锅", content=normalised_content("火锅", ["周五去吃火锅"], (), ["吃饭"]), marks=("important",))
    page = DayPage(DAY, (PageSession(1, one.time, one.content, ("important",), "/家/项目"),))
    files = [DayFile(1, page, {1: one})]
    index = json.loads(keywords_json(files, "2026-01-29T10:30:45Z", with_origin=True))
    assert index["version"] == "1.0"
    (entry,) = index["entries"]
    lines = render(page).split("\n")
    assert entry["topics"] == ["火锅"]
    assert {"吃饭", "火锅"} <= set(entry["keywords"])
    assert entry["project"] == "/家/项目"
    assert lines[entry["line_range"][0] - 1].startswith("## Session 1")
    assert lines[entry["line_range"][1] - 1] == "/家/项目"
    assert "- 2026-01-29 #1 火锅" in summary_md(files)
    assert "#吃饭" in summary_md(files)


def test_a_topic_made_of_a_summary_that_was_cut_says_that_it_is_cut() -> None:
    cut = 'My docker build keeps failing with "no space left...'
    assert summarise([SummaryTurn("user", cut), SummaryTurn("assistant", "Prune the images.")]).topic.endswith(
        "no space left…"
    )


@pytest.mark.parametrize(
    "answer",
    [
        "```typescript const port = (xs: number[]) => xs.map((x) => x + 8080);",
        "〔代码〕",
        "`const port = 8080; const path = 'a/b'`",
        "这样写：```ts\nconst port = 8080\nconst version = 2\n```",
    ],
)
def test_code_is_no_fact(answer: str) -> None:
    facts = summarise(talk("写一个处理函数", answer, "好的", "决定使用 8080 端口。")).facts
    assert facts == ("决定使用 8080 端口",)
