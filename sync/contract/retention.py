"""Answers of retention, and how they become JSON."""

from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict

from sync.clock import EPOCH, timestamp

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from sync.retention.policy import RetentionResult


class HeldJson(TypedDict):
    """How many events stay although they are due, by reason."""

    shown: int
    undelivered: int
    followed: int


class BehindJson(TypedDict):
    """A follower that has not taken yet what would go, and how far it has come."""

    name: str
    position: int


class RetentionJson(TypedDict):
    """`before`: what is older is due; `events`, `bytes`: what goes, or would; `archive`: the file that holds it."""

    before: str | None
    mostBytes: int | None
    totalEvents: int
    totalBytes: int
    events: int
    bytes: int
    oldest: str | None
    newest: str | None
    held: HeldJson
    behind: list[BehindJson]
    applied: bool
    archive: str | None
    sha256: str | None
    forgotten: int


def retention_to_json(value: "RetentionResult", *, applied: bool) -> RetentionJson:
    plan, held = value.plan, {str(reason): count for reason, count in value.plan.held.items()}
    before = plan.rules.before_ms
    return {
        "before": None if before is None else timestamp(EPOCH + timedelta(milliseconds=before)),
        "mostBytes": plan.rules.most_bytes,
        "totalEvents": plan.total_events,
        "totalBytes": plan.total_bytes,
        "events": len(plan.positions),
        "bytes": plan.bytes,
        "oldest": plan.oldest,
        "newest": plan.newest,
        "held": {
            "shown": held.get("shown", 0),
            "undelivered": held.get("undelivered", 0),
            "followed": held.get("followed", 0),
        },
        "behind": [{"name": name, "position": position} for name, position in sorted(plan.behind.items())],
        "applied": applied,
        "archive": value.archive,
        "sha256": value.sha256,
        "forgotten": value.forgotten,
    }
