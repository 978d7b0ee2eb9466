"""What a plan of retention says, and what came of it, as JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sync.clock import EPOCH, timestamp
from sync.published.retention import RetentionJson

if TYPE_CHECKING:  # only named here
    from sync.retention.policy import RetentionResult


def retention_to_json(value: RetentionResult, *, applied: bool) -> RetentionJson:
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
