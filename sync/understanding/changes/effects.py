"""What a newer statement does to an older one: nothing, it questions it, or it ends it. Pure: decision 045."""

from collections.abc import Collection
from enum import IntEnum
from typing import Final

from sync.understanding.likeness import bearer_of, content_of, is_contained, letters_of, names_in, topic_of, values_in
from sync.understanding.model import UNKNOWN_BEARER, USER_SUBJECT, Change, Statement

SHARE: Final = 0.6  # of the smaller content: two statements of one kind say nearly the same
NUMBER_NAMES: Final = 4  # digits; a shorter number is no object of a statement
SUBJECT_LETTERS: Final = 12  # letters at the beginning of a sentence, in which the name stands that it is about
CONTRADICTION: Final = 0.5  # of the smaller content: two statements say yes and no about one thing
STRONG: Final = frozenset({Change.REPLACES, Change.CORRECTS, Change.ENDS})
# One of each holds at a time; a tool has its role as slot.
EXCLUSIVE_SLOTS: Final = frozenset(
    {"name", "home", "location", "employer", "age", "reply.language", "reply.address"}
    | {"editor", "browser", "shell", "os", "theme", "notes"}
    | {"package_manager", "package_manager.javascript", "package_manager.python"}
)


class Effect(IntEnum):
    """In the order of what it does to the older statement."""

    NONE = 0
    QUESTIONS = 1
    CONTRADICTS = 2  # questions it, and waits itself
    ENDS = 3


def effect_of(older: Statement, newer: Statement) -> Effect:
    """What a statement does to an active one of another event."""
    if newer.change is Change.ADDS:
        return Effect.NONE
    left, right = content_of(older.text), content_of(newer.text)
    share = len(left & right) / (min(len(left), len(right)) or 1)
    shared = left & (right | content_of(newer.former or ""))
    is_of_one = bearer_of(older) == bearer_of(newer) != UNKNOWN_BEARER
    if newer.is_certain and is_of_one:
        if _ends(older, newer, share):
            return Effect.ENDS
        if newer.change is None and older.is_negative is not newer.is_negative and share >= CONTRADICTION:
            return Effect.CONTRADICTS
    if newer.change is None:
        is_opposite = older.is_negative is not newer.is_negative and not older.is_of_health and share >= CONTRADICTION
        is_other = is_of_one and (is_opposite or _gives_another_value(older, newer))
        return Effect.QUESTIONS if is_other else Effect.NONE
    subject = letters_of(newer.text)[:SUBJECT_LETTERS]  # a name there says whom it is about
    things = {word for word in shared if word not in subject or word not in names_in(older.text)}
    is_named = _has_object(things) and (is_of_one or _names(older, newer, shared))
    is_slip = newer.change is Change.CORRECTS and UNKNOWN_BEARER not in {older.about, newer.about}
    is_slip = is_slip and not values_in(older.text).isdisjoint(values_in(newer.text))
    is_of_topic = is_of_one and _is_of_topic(older, newer)
    return Effect.QUESTIONS if (is_named or is_slip or is_of_topic) and _questions(older, newer) else Effect.NONE


def _has_object(words: Collection[str]) -> bool:
    """Whether one of these words may be the object of a statement, as a short number is not."""
    return any(not word.isdigit() or len(word) >= NUMBER_NAMES for word in words)


def _gives_another_value(older: Statement, newer: Statement) -> bool:
    """Whether two statements give values of one kind, such as a date, and share most of the other words."""
    if older.is_of_health or newer.is_tentative or values_in(older.text).isdisjoint(values_in(newer.text)):
        return False
    left, right = (frozenset(filter(str.isalpha, content_of(one.text))) for one in (older, newer))
    return len(left & right) >= CONTRADICTION * min(len(left), len(right)) > 0


def _names(older: Statement, newer: Statement, shared: frozenset[str]) -> bool:
    """Whether a statement is about a name that an older one introduces."""
    if newer.about in {USER_SUBJECT, UNKNOWN_BEARER}:
        return bool(shared & names_in(older.text)) and bearer_of(older) not in {USER_SUBJECT, UNKNOWN_BEARER, "project"}
    return letters_of(newer.about) in letters_of(older.text)


def _ends(older: Statement, newer: Statement, share: float) -> bool:
    """Whether a certain statement about the same person or thing ends an older one."""
    is_of_topic = _is_of_topic(older, newer)
    if is_of_topic and {older.slot, newer.slot} <= EXCLUSIVE_SLOTS:
        is_part = content_of(newer.text) < content_of(older.text) and not _names_former(newer, older)
        return newer.change is not None or not is_part
    if is_contained(older, newer):
        return True
    if newer.change in STRONG and (_names_former(older, newer) or (is_of_topic and share > 0)):
        return True
    return newer.change is not None and older.kind is newer.kind and not older.is_of_health and share >= SHARE


def _is_of_topic(older: Statement, newer: Statement) -> bool:
    return topic_of(older) is not None and topic_of(older) == topic_of(newer)


def _names_former(older: Statement, newer: Statement) -> bool:
    former = content_of(newer.former or "")
    return bool(former) and former <= content_of(older.text)


def _questions(older: Statement, newer: Statement) -> bool:
    """Whether a change that names the object of an older statement may be a change of that."""
    if newer.change is Change.NOW:
        is_new = older.is_negative is not newer.is_negative or (older.kind is newer.kind and not newer.is_tentative)
        return is_new and not older.is_of_health
    is_ending = newer.change is Change.ENDS or _names_former(older, newer)
    return is_ending or (newer.change in STRONG and (newer.is_certain or not older.is_of_health))
