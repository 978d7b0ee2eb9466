"""Estimate how much an exchange matters, from 0 to 1, and explain it by its parts.

Above 0.6: what must still be in a memory a year later (an illness, a decision, a deadline, a correction, a fix). Below
0.3: small talk, trivia, a request for this once. Facts of every day (a tool, a taste, a habit) lie between.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sync.small_talk import is_small_talk
from sync.understanding.extractor import extract_statements
from sync.understanding.model import Change, FactKind, Statement
from sync.understanding.rules.typed_text import typed_sentences


def _signal(name: str, weight: float, pattern: str) -> tuple[str, float, re.Pattern[str]]:
    return name, weight, re.compile(pattern, re.IGNORECASE)


# Signals in the user's own declarative sentences: name, weight, pattern.
_SIGNALS: Final = (
    _signal(
        "health",
        0.45,
        r"过敏|确诊|糖尿病|高血压|哮喘|癌|肿瘤|结节|乙肝|携带者|怀孕|孕 ?\d|预产期|手术|住院|急救|急诊|抑郁|癫痫"
        r"|透析|心脏|不能(?:吃|喝|打|碰)|一点都不能|忌口|麻药|复查|allerg|diabet|pregnan|surgery|cancer|epilep"
        r"|asthma|celiac|pacemaker|insulin|blood thinners",
    ),
    _signal(
        "family event",
        0.4,
        r"去世|走了$|领证|结婚|离婚|离异|分手|出生|订婚|改名|忌日|抚养|探视|passed away|\bdied\b|married|divorced"
        r"|engaged|newborn",
    ),
    _signal(
        "decision",
        0.35,
        r"决定|敲定|拍板|商量好|定下来|签了|正式(?:决定|启用)|评审(?:会)?通过|约定好|共同负责|由我.{0,6}负责"
        r"|\bdecided\b|\bagreed\b|signed",
    ),
    _signal("deadline", 0.35, r"截止|到期|deadline|期限|交稿|答辩|盲审|开庭|expires?|\bdue (?:on|by|date)|runs out"),
    _signal(
        "rule",
        0.45,
        r"规定|红线|硬性|合规|不得|不允许|必须遵守|必须先|不能传|不能外传|禁止|forbid|not allowed|compliance"
        r"|must (?:not|never|always)",
    ),
    _signal(
        "money",
        0.45,
        r"(?:房贷|贷款|月供|预算|房租|学费|违约金|押金|赡养费|抚养费|债).{0,12}(?:以内|只能|最多|不超过|上限|欠"
        r"|承受|\d)|欠.{0,6}[万千百元块]|\b(?:mortgage|loan|debt|budget|alimony)\b.{0,24}\d",
    ),
    _signal(
        "fix",
        0.45,
        r"原因是|根因|是因为|查到根|都是因为|就好了?(?:$|[，,。])|就行了?(?:$|[，,。])|就过了|解决了|搞定了"
        r"|root cause|\bfixed it|sorted it|solved it|culprit|turned out",
    ),
    _signal(
        "correction",
        0.35,
        r"更正|纠正|记错|说错|写错|搞错|错了|不是.{1,10}(?:，|,)?(?:而)?是|其实(?:我|是)|之前说的|correction"
        r"|misspoke|got that wrong|my mistake",
    ),
    _signal(
        "asked to remember", 0.4, r"记住|记一下|记下来|别忘|不要忘|\bremember (?:that|this)|don't forget|note that"
    ),
    _signal("contact", 0.3, r"从今天起|以后.{0,6}(?:别再?找|不要再?提|都写)|别再提|别再找"),
)
_TECHNICAL_TROUBLE: Final = re.compile(
    r"(?i)报错|故障|回滚|崩溃|异常|error|exception|traceback|crash|```|\bdef \w|\bclass \w|select\b.+\bfrom\b"
)
_DATE: Final = re.compile(
    r"\d{1,2} ?月 ?\d{1,2}|\d{4}[-/年] ?\d{1,2}|\d{1,2} ?[号日]|\b\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug"
    r"|sep|oct|nov|dec)"
)
_KIND_WEIGHTS: Final = {
    FactKind.IDENTITY: 0.2,
    FactKind.PREFERENCE: 0.15,
    FactKind.HABIT: 0.15,
    FactKind.CONSTRAINT: 0.25,
    FactKind.RELATIONSHIP: 0.25,
    FactKind.POSSESSION: 0.15,
    FactKind.PLAN: 0.25,
    FactKind.DECISION: 0.45,
    FactKind.KNOWLEDGE: 0.2,
}
BASE: Final = 0.2
SMALL_TALK: Final = 0.05
MOST: Final = 0.95


@dataclass(frozen=True, slots=True)
class ImportancePart:
    """One reason for an importance, in plain English, and what it adds."""

    name: str
    weight: float


def explain_importance(
    user_message: str, ai_response: str = "", statements: Sequence[Statement] | None = None
) -> tuple[ImportancePart, ...]:
    """The parts of an exchange's importance. `statements`: those of the message if they are known already."""
    if is_small_talk(user_message):
        return (ImportancePart("small talk", SMALL_TALK),)
    if statements is None:
        statements = extract_statements(user_message)
    parts = [ImportancePart("exchange", BASE)]
    if statements:
        kinds = {one.kind for one in statements}
        strongest = max(kinds, key=lambda kind: _KIND_WEIGHTS[kind])
        parts.append(ImportancePart(f"states: {strongest}", _KIND_WEIGHTS[strongest]))
        if any(one.change is Change.CORRECTS for one in statements):
            parts.append(ImportancePart("correction", 0.3))
    parts.extend(_signals(user_message, has_statement=bool(statements)))
    if not statements and _TECHNICAL_TROUBLE.search(f"{user_message}\n{ai_response}"):
        parts.append(ImportancePart("technical trouble", 0.15))
    return tuple(parts)


def estimate_importance(
    user_message: str, ai_response: str = "", statements: Sequence[Statement] | None = None
) -> float:
    """The sum of the parts, at most `MOST`, rounded to two places because an event stores it."""
    total = sum(part.weight for part in explain_importance(user_message, ai_response, statements))
    return round(min(total, MOST), 2)


def _signals(message: str, *, has_statement: bool) -> list[ImportancePart]:
    own = " ".join(one.visible for one in typed_sentences(message) if not one.is_question)
    found = [ImportancePart(name, weight) for name, weight, pattern in _SIGNALS if pattern.search(own)]
    if has_statement and _DATE.search(own):
        found.append(ImportancePart("date", 0.1))
    return sorted(found, key=lambda part: -part.weight)[:3]
