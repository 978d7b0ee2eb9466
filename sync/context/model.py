"""The request for a context, and the decision. Pure values."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import msgspec

from sync.context.budgets import TURN_CHARS, TURN_ITEMS
from sync.recall.model import Hit, SearchRequest

Importance = Callable[[str], float]  # of what the user said: sync.understanding.importance
TurnBlock = Literal["all", "facts", "off"]
Silence = Literal["", "small_talk", "nothing_relevant", "all_given", "off"]


class Reason(Enum):
    """Why an item is a candidate."""

    RELEVANT = "relevant"  # by its words and its meaning
    FACT = "fact"  # a fact that answers the user's question about themselves
    DAY = "day"  # the message asks for a day
    CONTINUATION = "continuation"  # the message goes on with an earlier session
    STANDING = "standing"  # it says how the user wants such work done


class Outcome(Enum):
    """What was decided about a candidate."""

    GIVEN = "given"
    BELOW_THRESHOLD = "below_threshold"
    ALREADY_GIVEN = "already_given"  # in this session
    SUPERSEDED = "superseded"  # the user has said otherwise since
    CURRENT_SESSION = "current_session"  # a message of this very conversation, which the model has
    OVER_LIMIT = "over_limit"  # of items
    NO_ROOM = "no_room"  # within the characters of the block or of the session


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A message, and the limits of its block. `session_id`: of the conversation, for items given once."""

    search: SearchRequest
    max_chars: int = TURN_CHARS
    max_items: int = TURN_ITEMS
    session_id: str | None = None


class Candidate(msgspec.Struct, frozen=True):
    """An item that may be given. `threshold`: the relevance that it needs."""

    hit: Hit
    reason: Reason
    threshold: float
    outcome: Outcome = Outcome.GIVEN


class Memory(msgspec.Struct, frozen=True):
    """What a line of the turn block says: a text, or an exchange with its answer.

    `note`: what has changed since. `is_candidate`: a fact that the user has not confirmed. `has_tool_output`: the
    answer has words of tools or web pages.
    """

    hit: Hit
    text: str
    answer: str = ""
    note: str = ""
    is_candidate: bool = False
    has_tool_output: bool = False


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The block to put before a message; empty if nothing is relevant. `hits`: those in it, newest first.

    `silence`: why nothing is given ("small_talk", "nothing_relevant", "all_given"); "" otherwise.
    `partial`: the index was behind the log.
    """

    text: str
    hits: tuple[Hit, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    silence: Silence = ""
    partial: bool = False
