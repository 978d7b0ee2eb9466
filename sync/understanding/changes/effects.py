"""What a newer statement does to an older one: nothing, it questions it, or it ends it. Pure: decision 045."""

from enum import IntEnum
from typing import Final

from sync.understanding.likeness import bearer_of, content_of, is_contained, letters_of
from sync.understanding.model import UNKNOWN_BEARER, Change, Statement

SHARE: Final = 0.6  # of the smaller content: two statements of one kind say nearly the same
CONTRADICTION: Final = 0.5  # of the smaller content: two statements say yes and no about one thing
STRONG: Final = frozenset({Change.REPLACES, Change.CORRECTS, Change.ENDS})
# One of each holds at a time; a tool has its role as slot.
EXCLUSIVE_SLOTS: Final = frozenset(
    {"name", "location", "home", "employer", "age", "reply.language", "reply.address"}
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
    if UNKNOWN_BEARER in {older.about, newer.about} or newer.change is Change.ADDS:
        return Effect.NONE
    left, right = content_of(older.text), content_of(newer.text)
    share = len(left & right) / (min(len(left), len(right)) or 1)
    shared = left & (right | content_of(newer.former or ""))
    is_of_one = bearer_of(older) == bearer_of(newer)
    if newer.is_certain and is_of_one:
        if _ends(older, newer, share):
            return Effect.ENDS
        if newer.change is None and older.is_negative is not newer.is_negative and share >= CONTRADICTION:
            return Effect.CONTRADICTS
    is_named = is_of_one or letters_of(newer.about) in letters_of(older.text)
    return Effect.QUESTIONS if shared and is_named and _questions(older, newer) else Effect.NONE


def _ends(older: Statement, newer: Statement, share: float) -> bool:
    """Whether a certain statement about the same person or thing ends an older one."""
    is_of_slot = older.slot is not None and older.slot == newer.slot
    if is_of_slot and older.slot in EXCLUSIVE_SLOTS:
        return newer.change is not None or not content_of(newer.text) < content_of(older.text)
    if is_contained(older, newer):
        return True
    if newer.change in STRONG and (_names_former(older, newer) or (is_of_slot and share > 0)):
        return True
    return newer.change is not None and older.kind is newer.kind and not older.is_of_health and share >= SHARE


def _names_former(older: Statement, newer: Statement) -> bool:
    former = content_of(newer.former or "")
    return bool(former) and former <= content_of(older.text)


def _questions(older: Statement, newer: Statement) -> bool:
    """Whether a change that names the object of an older statement may be a change of that."""
    if newer.change is Change.NOW:
        return older.is_negative is not newer.is_negative and not older.is_of_health
    return newer.change is Change.ENDS or (newer.change in STRONG and (newer.is_certain or not older.is_of_health))
