"""What an extractor reads in a message (`Statement`), and what is known about the user or a project (`Fact`)."""

from enum import StrEnum
from typing import Final

import msgspec

USER_SUBJECT: Final = "user"  # of facts about the user
UNKNOWN_BEARER: Final = "unknown"  # `about` of a statement about somebody or something that it does not name
MAX_STATEMENT_LENGTH: Final = 120  # characters of a statement
MAX_REMEMBERED: Final = 500  # characters of what the user asks to be remembered
REMEMBER: Final = "remember"  # the reader of that
TENTATIVE: Final = 0.5  # a statement of a smaller confidence counts only if it changes a fact that is known

VITAL_AREAS: Final = frozenset({"diet", "health", "body"})  # of slots


class FactKind(StrEnum):
    IDENTITY = "identity"
    PREFERENCE = "preference"
    HABIT = "habit"
    CONSTRAINT = "constraint"
    RELATIONSHIP = "relationship"
    POSSESSION = "possession"
    PLAN = "plan"
    DECISION = "decision"
    KNOWLEDGE = "knowledge"


def _is_vital(kind: FactKind, slot: str | None) -> bool:
    return kind is FactKind.IDENTITY or (slot or "").partition(".")[0] in VITAL_AREAS


class FactSection(StrEnum):
    """The subsection of 用户偏好 that shows a fact."""

    WORK_HABITS = "work_habits"  # 工作习惯
    COMMUNICATION_STYLE = "communication_style"  # 沟通风格
    TECHNICAL_PREFERENCES = "technical_preferences"  # 技术偏好
    PERSONAL = "personal"  # 个人情况


class FactOrigin(StrEnum):
    USER_STATED = "user-stated"
    USER_CONFIRMED = "user-confirmed"
    AGENT_PROPOSED = "agent-proposed"
    IMPORTED = "imported"
    OTHER_DEVICE = "other-device"


TRUSTED: Final = frozenset({FactOrigin.USER_STATED, FactOrigin.USER_CONFIRMED})  # the user's own words


class FactStatus(StrEnum):
    ACTIVE = "active"
    CANDIDATE = "candidate"  # waits for the user's confirmation, and does not count as known
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"


class Change(StrEnum):
    """What a statement says about an older one."""

    REPLACES = "replaces"  # 改用浅色, 现在住宁波, 决定用 X 替换 Y
    CORRECTS = "corrects"  # 记错了, 其实…
    NOW = "now"  # 现在…: an older one that says nearly the same no longer holds, if there is one
    ENDS = "ends"  # 不再喝咖啡了: the older one no longer holds
    ADDS = "adds"  # 我也用 PyCharm: it holds beside older ones


class Level(StrEnum):
    """How sure the reader is. It decides what a statement may do: only a certain one becomes active by itself."""

    CERTAIN = "certain"
    LIKELY = "likely"  # a candidate: it replaces nothing, and waits for the user


class Statement(msgspec.Struct, frozen=True, omit_defaults=True, rename={"text": "content", "is_negative": "negative"}):
    """One statement of the user about themselves, as an extractor reads it in one message.

    Its fields are those of the event, so that facts are the same on every device whatever reads there.
    """

    text: str  # the user's own words, a substring of the message, at most MAX_STATEMENT_LENGTH characters
    kind: FactKind
    section: FactSection
    slot: str | None = None  # a stable topic ("editor", "diet.allergy.花生")
    is_negative: bool = False
    change: Change | None = None
    former: str | None = None  # what the statement says no longer holds (决定用 X 替换 Y: Y), for slotless facts too
    valid_until: str | None = None  # a date, YYYY-MM-DD, of a plan or a limited statement
    confidence: float = 1.0
    valid_from: str | None = None  # a date, YYYY-MM-DD: since when it holds, where its words say so
    about: str = (
        USER_SUBJECT  # user, the word of a relation (sister), a name that the user introduced, project, unknown
    )
    level: Level = Level.CERTAIN
    importance: float | None = None  # from 0 to 1, of the statement; None if its reader says nothing about it
    reader: str = ""  # what read it: forms, plain:<hash>, remember, model

    @property
    def is_tentative(self) -> bool:
        """Whether it is no statement of its own: it counts only if it questions a fact that is known."""
        return self.confidence < TENTATIVE

    @property
    def is_certain(self) -> bool:
        """Whether it may end what it replaces; any other one only questions it."""
        return self.level is Level.CERTAIN and not self.is_tentative

    @property
    def is_vital(self) -> bool:
        """Whether to forget it may hurt: who the user is, their health, what they must not eat or take."""
        return _is_vital(self.kind, self.slot)

    @property
    def is_of_health(self) -> bool:
        """Whether it is about health or safety."""
        return (self.slot or "").partition(".")[0] in VITAL_AREAS


class Fact(msgspec.Struct, frozen=True):
    """One fact, as the log says it is now."""

    fact_id: str
    kind: FactKind
    section: FactSection
    subject: str  # "user" or "project:<id>"
    statement: str
    slot: str | None
    is_negative: bool
    valid_from: str  # ISO 8601 time of the event that stated it
    valid_until: str | None
    evidence: tuple[str, ...]  # event ids, oldest first
    origin: FactOrigin
    confidence: float
    status: FactStatus
    superseded_by: str | None = None  # the fact_id that replaced it
    questioned_by: str | None = None  # the fact_id of a newer sentence, after which all or a part of it may not hold
    outdated_part: str | None = None  # the words in it that no longer hold, of one that is outdated in part
    statement_ids: tuple[str, ...] = ()  # of its statements, its own id first
    about: str = USER_SUBJECT
    level: Level = Level.CERTAIN
    importance: float | None = None

    @property
    def waits(self) -> bool:
        """Whether the user is asked about it: a candidate, or one that a newer sentence questions."""
        return self.status is FactStatus.CANDIDATE or self.questioned_by is not None

    @property
    def is_vital(self) -> bool:
        """Whether to forget it may hurt: who the user is, their health, what they must not eat or take."""
        return _is_vital(self.kind, self.slot)

    @property
    def is_over(self) -> bool:
        """Whether its last day is over; nothing replaced it."""
        is_date = self.valid_until is not None and len(self.valid_until) == len("2026-03-14")
        return self.status is FactStatus.SUPERSEDED and self.superseded_by is None and is_date


class AnswerKind(StrEnum):
    """What the user, or a model with a quote, said about a fact that exists."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    EDITED = "edited"
    RETRACTED = "retracted"
    SUPERSEDED = "superseded"
    QUESTIONED = "questioned"  # it may not hold any more after a newer sentence, says a model
    DOUBTED = "doubted"  # read wrongly, says a model: a candidate until the user confirms it or states it again


class RecordedStatement(msgspec.Struct, frozen=True):
    """A statement as an event holds it. `hlc` orders statements and answers; `recorded_at` is ISO 8601, for display.

    `origin` is the same on every device: it comes from the event, not from the reader's point of view. `has_door`: the
    event says where it was recorded; those of before doors do not.
    """

    statement: Statement
    fact_id: str  # unique; a repeated statement keeps the id of the first
    event_id: str  # the event that states it: the evidence
    hlc: str
    recorded_at: str
    device_id: str
    origin: FactOrigin
    subject: str = USER_SUBJECT
    is_proven: bool = True
    has_door: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether it makes a fact active: the user's own words, read for certain."""
        return self.origin in TRUSTED and self.statement.is_certain

    @property
    def change_id(self) -> str:
        """The event whose effect this is."""
        return self.fact_id


class FactAnswer(msgspec.Struct, frozen=True):
    """An answer about a fact, named by the `fact_id` of any statement that belongs to it.

    `statement` is the new text of an edit, `superseded_by` the fact that replaces it (SUPERSEDED), `device_id` the
    device on which it was given.
    """

    kind: AnswerKind
    fact_id: str
    event_id: str
    hlc: str
    recorded_at: str
    statement: Statement | None = None
    superseded_by: str | None = None
    device_id: str = ""
    is_proven: bool = True

    @property
    def change_id(self) -> str:
        """The event whose effect this is."""
        return self.event_id
