"""The answer of `doctor`, and how it becomes JSON."""

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from collections.abc import Sequence

    from sync.startup.checks import HealthCheck


# apart from HealthCheck, whose `hint` has a default: then the published schema would say that it is optional
class CheckJson(TypedDict):
    """One thing looked at. `ok` is null if there is nothing to judge; `hint` says what to do."""

    name: str
    ok: bool | None
    found: str
    hint: str


class HealthJson(TypedDict):
    """`ok` is false where any check is."""

    ok: bool
    checks: list[CheckJson]


def health_to_json(checks: "Sequence[HealthCheck]") -> HealthJson:
    found: list[CheckJson] = [
        {"name": check.name, "ok": check.ok, "found": check.found, "hint": check.hint} for check in checks
    ]
    return {"ok": all(check.ok is not False for check in checks), "checks": found}
