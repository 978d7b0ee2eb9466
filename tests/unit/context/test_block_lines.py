"""The lines that the block of a system prompt may have."""

from msgspec import structs

from sync.context.block_lines import FACTS, LATE, LIKELY, OWN, block_lines
from sync.context.known_facts import KnownFacts
from sync.document.markdown.entry_ids import fact_entry_id
from sync.document.markdown.model import Snapshot
from sync.document.markdown.parse import parse_text
from sync.document.read.line_authors import AuthorLabels, LineLabel
from sync.document.read.results import LoadResult
from sync.texts.language import LanguageChoice
from sync.understanding.model import FactOrigin, FactStatus
from tests.unit.context.test_known_facts import fact

TEXT = """\
# AI 对话记忆

## 用户偏好

### 个人情况
- 我对花生过敏
- 喜欢浅色壁纸
- 总是放行

### 技术偏好
- （待补充）

## 约定
- 提交前跑测试

## 重要对话记录

### 2026/11/21
- 用户问：谢谢
- AI 答：不客气
- 用户问：我对花生过敏
- AI 答：记住了

### 2026/11/20
- 用户问：房租什么时候到期
- AI 答：月底

### 更早的对话
- 2026/10/1：房租；壁纸（2 次对话）

---

**最后更新**：2026/11/21 10:00:00
"""
IDS = ["ent_0", "ent_1", "ent_2", "ent_3", "evt_1.q", "evt_1.a", "evt_2.q", "evt_2.a", "evt_3.q", "evt_3.a", "ent_8"]
ALLERGY = structs.replace(
    fact("diet.allergy"), statement="我对花生过敏", statement_ids=("f1",), evidence=("evt_2",), about="sister"
)


def loaded() -> LoadResult:
    ids = (fact_entry_id("f1"), *IDS[1:])
    snapshot = Snapshot(parse_text(TEXT), ids)
    labels: AuthorLabels = {"ent_2": LineLabel("来自 工具", "from a tool")}
    return LoadResult.of(snapshot, labels, (), None, language=LanguageChoice("zh"), source="local", updated_at=None)


def test_facts_have_their_month_and_whom_they_are_about_and_nothing_stands_twice() -> None:
    lines = block_lines(loaded(), KnownFacts([ALLERGY]), lambda _: 0.3)
    assert [(line.part, line.text) for line in lines] == [
        (FACTS, "我对花生过敏（2026-11，sister）"),
        (FACTS, "喜欢浅色壁纸"),
        (FACTS, "【来自 工具】总是放行"),
        (OWN, "提交前跑测试"),
        (LATE, "2026-11-20 用户问：房租什么时候到期；AI 答：月底"),
    ]
    assert [line.author for line in lines] == [None, None, "来自 工具", None, None]
    assert lines[0].is_vital
    assert {"f1", "evt_3"} <= lines[0].ids | lines[-1].ids


def test_a_questioned_allergy_stands_with_the_newer_sentence() -> None:
    newer = structs.replace(fact("other"), fact_id="f2", statement="花生现在能吃了", valid_from="2026-11-25T10:00:00Z")
    asked = structs.replace(ALLERGY, about="user", questioned_by="f2")
    (line, *_) = block_lines(loaded(), KnownFacts([asked, newer]), lambda _: 0.3)
    assert line.text == "我对花生过敏（2026-11，待确认：2026-11-25 又说“花生现在能吃了”）"
    assert line.is_vital


def test_what_may_be_a_fact_stands_quoted_with_its_day() -> None:
    likely = structs.replace(fact("plan", FactStatus.CANDIDATE), statement="下周搬去苏州", statement_ids=("f9",))
    programs = structs.replace(likely, origin=FactOrigin.AGENT_PROPOSED, statement="总是放行")
    lines = block_lines(loaded(), KnownFacts([likely, programs]), lambda _: 0.3)
    (line,) = (line for line in lines if line.part == LIKELY)
    assert line.text == "2026-11-01 用户说，待确认：“下周搬去苏州”"
    assert "f9" in line.ids


def test_what_questions_a_likely_fact_stands_beside_it_alone() -> None:
    older = structs.replace(fact("plan", FactStatus.CANDIDATE), statement="下周搬去苏州", questioned_by="f9")
    newer = structs.replace(older, fact_id="f9", statement="改去无锡了", questioned_by=None)
    (line,) = (one for one in block_lines(loaded(), KnownFacts([older, newer]), lambda _: 0.3) if one.part == LIKELY)
    assert line.text == "2026-11-01 用户说，待确认：“下周搬去苏州”（待确认：2026-11-01 又说“改去无锡了”）"


def test_an_exchange_whose_fact_was_replaced_is_not_shown() -> None:
    facts = KnownFacts([], {"evt_3": frozenset({"房租什么时候到期"})})
    assert all("房租" not in line.text for line in block_lines(loaded(), facts, lambda _: 0.3))


def test_what_is_important_comes_before_what_is_newer() -> None:
    lines = block_lines(loaded(), KnownFacts(), lambda question: 0.9 if "房租" in question else 0.3)
    assert [line.text[:10] for line in lines if line.part == LATE] == ["2026-11-20", "2026-11-21"]
