"""The faults that explain each kind of error, and those that still explain it in the quiet tail.

An unexplained error is a defect, however clear its message. Local actions (an update, an edit, a search, an erasure
request) never fail because of the network, nor after the disk has recovered.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

# kind of error: the kinds of fault that cause it
DISK: Final[Mapping[str, frozenset[str]]] = {
    "storage_busy": frozenset({"database"}),
    "storage_error": frozenset({"database", "file"}),
    "storage_full": frozenset({"database", "file", "full"}),
    "storage_read_only": frozenset({"file"}),
}
NETWORK: Final[Mapping[str, frozenset[str]]] = {
    # the last one: following a server that was restored more than once may take two rounds
    "cloud_unavailable": frozenset({"loss", "outage", "partition", "restore", "away"}),
    "rate_limited": frozenset({"loss", "outage", "partition"}),
    "forbidden": frozenset({"expire"}),  # tokens expired during a refresh
}
# permanent: a better network does not help
LASTING: Final[Mapping[str, frozenset[str]]] = {
    # the last four: the disk or the end of the program prevented storing the session; a guest is an account's now
    "login_required": frozenset(
        {"expire", "switch", "logout", "clone", "rollback", "file", "crash", "power", "pairing"}
    ),
    "device_revoked": frozenset({"revoke"}),
    "device_conflict": frozenset({"clone", "rollback"}),
    "device_forked": frozenset({"clone"}),  # twice in one round: as a copy, and because the simulator says so
}
# on the local network: two databases continue one history
COPIED: Final[Mapping[str, frozenset[str]]] = {"device_forked": frozenset({"clone", "rollback"})}
# by the first word of an action: errors that it returns without any fault
ANSWERS: Final[Mapping[str, frozenset[str]]] = {
    "log": frozenset({"not_synced", "login_required"}),  # a logout with unsent data, or without an account
    "revoke": frozenset({"device_unknown"}),  # a device that never registered
}
ASKS_THE_CLOUD: Final = frozenset({"sync", "log", "revoke", "devices"})


class QuietTail(Enum):
    """Progress of the quiet tail."""

    NOT_YET = 0
    BEGUN = 1  # no new faults, but earlier requests of the program may still be pending
    COMPLETE = 2


def is_explained(what: str, kind: str, kinds: Collection[str], *, calm: QuietTail, is_guest: bool) -> bool:
    """Whether these faults explain the error of an action. `is_guest`: no account is logged in."""
    action = what.split(" ", 1)[0]
    if kind in ANSWERS.get(action, ()):
        return True
    excused = dict(DISK) if calm is QuietTail.NOT_YET else {}
    if action == "lan":
        excused |= COPIED
    if action in ASKS_THE_CLOUD:
        if kind == "login_required" and is_guest:
            return True
        excused |= LASTING if calm is QuietTail.COMPLETE else {**NETWORK, **LASTING}
    return not excused.get(kind, frozenset()).isdisjoint(kinds)
