"""Answers about facts, and how they become JSON."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypedDict

from sync.log.authorship import Author, AuthorName

if TYPE_CHECKING:  # named only in annotations
    from sync.understanding.model import Fact, FactAnswer, RecordedStatement
    from sync.understanding.projection import Facts
    from sync.understanding.service import FactExplanation

FactStatusName = Literal["active", "candidate", "superseded", "retracted"]
FactOriginName = Literal["user-stated", "user-confirmed", "agent-proposed", "imported", "other-device"]


class FactQuestionJson(TypedDict):
    """A newer sentence after which a fact may no longer hold. `factId`: of the sentence."""

    factId: str
    statement: str
    at: str


class FactJson(TypedDict):
    """`subject`: user, or project:<id>. `evidence`: ids of the exchanges in which it was stated, oldest first.

    `about`: user, a relation such as sister, a name, project or unknown. `slot`: the topic that it answers, such as
    editor. `deviceId`: where it was stated first. `author`: who said it, as this device sees it. `questionedBy`: until
    the user confirms or retracts an active fact. `outdatedPart`: the words in it that no longer hold.
    """

    factId: str
    kind: str
    section: str
    subject: str
    statement: str
    about: str
    slot: str | None
    isNegative: bool
    status: FactStatusName
    origin: FactOriginName
    confidence: float
    evidence: list[str]
    validFrom: str
    validUntil: str | None
    supersededBy: str | None
    questionedBy: FactQuestionJson | None
    outdatedPart: str | None
    deviceId: str
    author: AuthorName


class FactCountsJson(TypedDict):
    """`questioned`: of the active ones."""

    active: int
    questioned: int
    candidate: int
    superseded: int
    retracted: int


class FactsJson(TypedDict):
    """`counts`: of all facts, whatever was asked for."""

    facts: list[FactJson]
    counts: FactCountsJson


class FactAnswerJson(TypedDict):
    fact: FactJson


class FactStatementJson(TypedDict):
    """`eventId`: the exchange in which it was stated; of another program, the fact's own event."""

    factId: str
    eventId: str
    at: str
    deviceId: str
    origin: FactOriginName
    text: str


class FactVerdictJson(TypedDict):
    """`text`: of an edit. `supersededBy`: the fact that replaced it."""

    verdict: Literal["confirmed", "rejected", "edited", "retracted", "superseded", "questioned", "doubted"]
    eventId: str
    at: str
    text: str | None
    supersededBy: str | None


class FactExplanationJson(TypedDict):
    """`supersedes`: the facts that it replaced. `replacedBy`: the fact that replaced it."""

    fact: FactJson
    statements: list[FactStatementJson]
    verdicts: list[FactVerdictJson]
    supersedes: list[FactJson]
    replacedBy: FactJson | None


_AUTHORS: Final = {"agent-proposed": Author.PROGRAM, "imported": Author.FILE, "other-device": Author.DEVICE}


def fact_to_json(fact: "Fact", facts: "Facts", own_device_ids: Collection[str]) -> FactJson:
    device_id, newer = facts.device_of(fact), facts.by_id.get(fact.questioned_by or "")
    said_by = Author.USER if device_id in own_device_ids else Author.DEVICE
    return {
        "factId": fact.fact_id,
        "kind": fact.kind.value,
        "section": fact.section.value,
        "subject": fact.subject,
        "statement": fact.statement,
        "about": fact.about,
        "slot": fact.slot,
        "isNegative": fact.is_negative,
        "status": fact.status.value,
        "origin": fact.origin.value,
        "confidence": fact.confidence,
        "evidence": list(fact.evidence),
        "validFrom": fact.valid_from,
        "validUntil": fact.valid_until,
        "supersededBy": fact.superseded_by,
        "questionedBy": None if newer is None else _question_to_json(newer, facts),
        "outdatedPart": fact.outdated_part,
        "deviceId": device_id,
        "author": _AUTHORS.get(fact.origin.value, said_by).value,
    }


def _question_to_json(newer: "Fact", facts: "Facts") -> FactQuestionJson:
    at = facts.statements[newer.statement_ids[-1]].recorded_at
    return {"factId": newer.fact_id, "statement": newer.statement, "at": at}


def facts_to_json(chosen: "Sequence[Fact]", facts: "Facts", own_device_ids: Collection[str]) -> FactsJson:
    statuses = [fact.status.value for fact in facts.facts]
    counts: FactCountsJson = {
        "active": statuses.count("active"),
        "questioned": sum(fact.waits for fact in facts.facts) - statuses.count("candidate"),
        "candidate": statuses.count("candidate"),
        "superseded": statuses.count("superseded"),
        "retracted": statuses.count("retracted"),
    }
    return {"facts": [fact_to_json(fact, facts, own_device_ids) for fact in chosen], "counts": counts}


def fact_explanation_to_json(
    explained: "FactExplanation", facts: "Facts", own_device_ids: Collection[str]
) -> FactExplanationJson:
    return {
        "fact": fact_to_json(explained.fact, facts, own_device_ids),
        "statements": [_statement_to_json(one) for one in explained.statements],
        "verdicts": [_verdict_to_json(one) for one in explained.answers],
        "supersedes": [fact_to_json(fact, facts, own_device_ids) for fact in explained.supersedes],
        "replacedBy": None
        if explained.replaced_by is None
        else fact_to_json(explained.replaced_by, facts, own_device_ids),
    }


def _statement_to_json(said: "RecordedStatement") -> FactStatementJson:
    return {
        "factId": said.fact_id,
        "eventId": said.event_id,
        "at": said.recorded_at,
        "deviceId": said.device_id,
        "origin": said.origin.value,
        "text": said.statement.text,
    }


def _verdict_to_json(answer: "FactAnswer") -> FactVerdictJson:
    return {
        "verdict": answer.kind.value,
        "eventId": answer.event_id,
        "at": answer.recorded_at,
        "text": None if answer.statement is None else answer.statement.text,
        "supersededBy": answer.superseded_by,
    }
