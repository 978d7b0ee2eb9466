"""Answers of search and context, and how they become JSON."""

from datetime import timedelta
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from sync.clock import EPOCH, timestamp
from sync.log.authorship import AuthorName

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from collections.abc import Collection

    from sync.context.model import Candidate, TurnContext
    from sync.recall.model import Hit, SearchResult


class PointerJson(TypedDict):
    """Where a hit comes from: its event and, for a line of the document, the entry."""

    eventId: str
    entryId: str | None
    sessionId: str


class PartsJson(TypedDict):
    """`keyword` and `semantic` are 0 to 1 among what was found; `semantic` is null if no vectors were compared.

    `cover`: the share of the question's weight that the words hold; `factor`: importance, marks and age.
    """

    keyword: float
    semantic: float | None
    cover: float
    factor: float


class TalkPartJson(TypedDict):
    """The conversation of a hit as another kind of item, such as its daily record."""

    eventId: str
    kind: str
    text: str


class HitJson(TypedDict):
    """`around`: the messages before and after it; `also`: events that say the same, folded into this hit.

    `relevance` and `score`: the probability that it matters for the question, 0 to 1, whatever else was found; the
    order of the hits is another one. `talk`: the same conversation as other kinds of items; missing if there are none.
    `superseded`: the user has said otherwise since, or taken it back; missing if not.
    """

    eventId: str
    kind: str
    text: str
    date: str
    ts: str
    score: float
    parts: PartsJson
    origin: str
    author: AuthorName
    deviceId: str
    projectId: str
    projectPath: str | None
    importance: float
    marks: list[str]
    pointer: PointerJson
    around: list[str]
    also: list[str]
    relevance: NotRequired[float]
    talk: NotRequired[list[TalkPartJson]]
    superseded: NotRequired[bool]


class SearchJson(TypedDict):
    """`semantic`: whether vectors were compared: all, those that exist so far (partial), or why none.

    `since`, `until`: the time that words of the question named, if any.
    `searched`: all, or recent if the recent part alone was enough.
    `partial`: the index is still being built (after a large pull or import), so some memories are missing.
    """

    hits: list[HitJson]
    semantic: Literal["off", "used", "partial", "pending", "failed"]
    since: str | None
    until: str | None
    searched: Literal["all", "recent"]
    partial: bool


OutcomeJson = Literal[
    "given", "below_threshold", "already_given", "superseded", "current_session", "over_limit", "no_room"
]


class CandidateJson(TypedDict):
    """A memory that was considered for a context, and what was decided about it.

    `threshold`: the relevance that it needs; `cosines`: by the name of the model; `rareShare`: the share of the
    message's rare words that it holds.
    """

    eventId: str
    kind: str
    text: str
    reason: Literal["relevant", "fact", "day", "continuation", "standing"]
    outcome: Literal[
        "given", "below_threshold", "already_given", "superseded", "current_session", "over_limit", "no_room"
    ]
    relevance: float
    threshold: float
    rareShare: float
    cosines: dict[str, float]


class ContextJson(TypedDict):
    """`context` is ready to be put before the message; empty if nothing is relevant.

    `silence`: why it is empty, else "". `candidates`: only if `explain` was asked for.
    """

    context: str
    hits: list[HitJson]
    partial: bool
    silence: NotRequired[Literal["", "small_talk", "nothing_relevant", "all_given", "off"]]
    candidates: NotRequired[list[CandidateJson]]


SCORE_DIGITS = 4  # of a score: more would differ between machines


def search_to_json(
    value: "SearchResult", own_device_ids: "Collection[str]", superseded: "Collection[int]" = ()
) -> SearchJson:
    """`superseded`: the ids of such items."""
    hits = [hit_to_json(found, own_device_ids) for found in value.hits]
    for answer, found in zip(hits, value.hits, strict=True):
        if found.item.item_id in superseded:
            answer["superseded"] = True
    return {
        "hits": hits,
        "semantic": value.semantic,
        "since": _timestamp_or_none(value.since_ms),
        "until": _timestamp_or_none(value.until_ms),
        "searched": "all" if value.includes_old else "recent",
        "partial": value.partial,
    }


def context_to_json(value: "TurnContext", own_device_ids: "Collection[str]", *, explain: bool = False) -> ContextJson:
    answer: ContextJson = {
        "context": value.text,
        "hits": [hit_to_json(found, own_device_ids) for found in value.hits],
        "partial": value.partial,
        "silence": value.silence,
    }
    if explain:
        answer["candidates"] = [_candidate_to_json(one) for one in value.candidates]
    return answer


def _candidate_to_json(value: "Candidate") -> CandidateJson:
    item, evidence = value.hit.item, value.hit.evidence
    return {
        "eventId": item.event_id,
        "kind": item.kind,
        "text": item.text,
        "reason": value.reason.value,
        "outcome": value.outcome.value,
        "relevance": round(value.hit.relevance, SCORE_DIGITS),
        "threshold": round(value.threshold, SCORE_DIGITS),
        "rareShare": round(evidence.rare_share, SCORE_DIGITS),
        "cosines": {name: round(cosine, SCORE_DIGITS) for name, cosine in sorted(evidence.cosines.items())},
    }


def hit_to_json(value: "Hit", own_device_ids: "Collection[str]") -> HitJson:
    kept, parts = value.item, value.parts
    answer: HitJson = {
        "eventId": kept.event_id,
        "kind": kept.kind,
        "text": kept.text,
        "date": kept.date,
        "ts": kept.ts,
        "score": round(value.relevance, SCORE_DIGITS),
        "parts": {
            "keyword": round(parts.keyword, SCORE_DIGITS),
            "semantic": None if parts.semantic is None else round(parts.semantic, SCORE_DIGITS),
            "cover": round(parts.cover, SCORE_DIGITS),
            "factor": round(parts.factor, SCORE_DIGITS),
        },
        "origin": kept.origin,
        "author": kept.written.seen_from(own_device_ids).value,
        "deviceId": kept.device_id,
        "projectId": kept.project_id,
        "projectPath": kept.project_path,
        "importance": kept.importance,
        "marks": list(kept.marks),
        "pointer": {"eventId": kept.event_id, "entryId": kept.entry_id, "sessionId": kept.session_id},
        "around": list(value.neighbour_texts),
        "also": list(value.duplicate_event_ids),
        "relevance": round(value.relevance, SCORE_DIGITS),
    }
    if value.talk_parts:
        answer["talk"] = [{"eventId": one.event_id, "kind": one.kind, "text": one.text} for one in value.talk_parts]
    return answer


def _timestamp_or_none(ms: int | None) -> str | None:
    try:
        return None if ms is None else timestamp(EPOCH + timedelta(milliseconds=ms))
    except OverflowError:  # a span that ends with the calendar
        return None
