"""What `recall/*` answers."""

from typing import Literal, TypedDict

RecallOriginJson = Literal["user-typed", "model-written", "imported", "tool", "peer"]


class PointerJson(TypedDict):
    """Where a hit comes from: its event and, for a line of the document, the entry."""

    eventId: str
    entryId: str | None
    sessionId: str


class PartsJson(TypedDict):
    """`keyword` and `semantic` are 0 to 1 among what was found; `semantic` is null where meaning was not asked.

    `cover`: the share of the question's weight that the words hold; `factor`: importance, marks and age.
    """

    keyword: float
    semantic: float | None
    cover: float
    factor: float


class HitJson(TypedDict):
    """`around`: what was said before and after it; `also`: events that say the same, folded into this hit."""

    eventId: str
    kind: str
    text: str
    date: str
    ts: str
    score: float
    parts: PartsJson
    origin: str
    deviceId: str
    projectId: str
    projectPath: str | None
    importance: float
    marks: list[str]
    pointer: PointerJson
    around: list[str]
    also: list[str]


class SearchJson(TypedDict):
    """`semantic`: whether meaning was asked: of all, of those that have a vector by now (partial), or why not.

    `since`, `until`: the time that words of the question named, if any.
    `searched`: all, or recent where the recent part alone was enough.
    `partial`: the index is still being built (after a large pull or import), so some memories are missing.
    """

    hits: list[HitJson]
    semantic: Literal["off", "used", "partial", "pending", "failed"]
    since: str | None
    until: str | None
    searched: Literal["all", "recent"]
    partial: bool


class ContextJson(TypedDict):
    """`context` is empty where nothing is relevant; else it is ready to be put before the message."""

    context: str
    hits: list[HitJson]
    partial: bool
