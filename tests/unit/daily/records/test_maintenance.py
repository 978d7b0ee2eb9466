"""Repeats, expired records, questions to the user."""

import pytest
from msgspec.structs import replace

from sync.daily.conversation.extractive_summary import summarise
from sync.daily.conversation.keywords import is_same_text, similarity
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
from sync.log.event_types import SESSION_EDITED, SESSION_MARKED, SESSION_REMOVED
from tests.unit.daily.examples import DAY, record, talk


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
