"""Why an act of a history may fail: the faults that explain each kind of error, and those that still stand at its end.

What is not explained is a defect, however well the program says what is the matter. What a person does on his own
machine (an update, an edit, a search, a wish to forget) never fails because of the network, nor once the disk is well.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

# kind of error: the kinds of fault that bring it, as `history.py` names them
DISK: Final[Mapping[str, frozenset[str]]] = {
    "storage_busy": frozenset({"database"}),
    "storage_error": frozenset({"database", "file"}),
    "storage_full": frozenset({"database", "file", "full"}),
    "storage_read_only": frozenset({"file"}),
}
NETWORK: Final[Mapping[str, frozenset[str]]] = {
    # the last one: a server restored more than once meanwhile may take two rounds to be followed, and says so
    "cloud_unavailable": frozenset({"loss", "outage", "partition", "restore"}),
    "rate_limited": frozenset({"loss", "outage", "partition"}),
    "forbidden": frozenset({"expire"}),  # tokens ended while one was being refreshed
}
# what somebody has done for good: no better line helps
LASTING: Final[Mapping[str, frozenset[str]]] = {
    # the last three: a session that the disk or the end of the program kept from being stored
    "login_required": frozenset({"expire", "switch", "logout", "clone", "rollback", "file", "crash", "power"}),
    "device_revoked": frozenset({"revoke"}),
    "device_conflict": frozenset({"clone", "rollback"}),
}
# an act by the first word of its name: what it answers where nothing is wrong with anything
ANSWERS: Final[Mapping[str, frozenset[str]]] = {
    "log": frozenset({"not_synced", "login_required"}),  # out, with something unsent, or of no account
    "revoke": frozenset({"device_unknown"}),  # one that has never been there
}
ASKS_THE_CLOUD: Final = frozenset({"sync", "log", "revoke", "devices"})


class QuietTail(Enum):
    """How far a history is in its quiet tail."""

    NOT_YET = 0
    BEGUN = 1  # nothing fails any more, but what the program had asked by itself before may still wait for its answer
    COMPLETE = 2


def is_explained(what: str, kind: str, kinds: Collection[str], *, calm: QuietTail, is_guest: bool) -> bool:
    """Whether an act may fail with this error in a history of these faults; `is_guest`: nobody is logged in there."""
    act = what.split(" ", 1)[0]
    if kind in ANSWERS.get(act, ()):
        return True
    excused = dict(DISK) if calm is QuietTail.NOT_YET else {}
    if act in ASKS_THE_CLOUD:
        if kind == "login_required" and is_guest:
            return True
        excused |= LASTING if calm is QuietTail.COMPLETE else {**NETWORK, **LASTING}
    return not excused.get(kind, frozenset()).isdisjoint(kinds)
