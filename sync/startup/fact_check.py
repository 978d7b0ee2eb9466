"""The check of the facts for `doctor`."""

from typing import TYPE_CHECKING

from sync.startup.checks import HealthCheck

if TYPE_CHECKING:  # loaded at its first use
    from sync.understanding.service import FactService


async def check_facts(service: "FactService") -> HealthCheck:
    """How many facts there are, and how many wait for the user."""
    facts = await service.current()
    if not facts.facts:
        return HealthCheck("facts", ok=None, found="none")
    waiting = len(facts.candidates)
    hint = "`xiaobai-memory facts review` shows them." if waiting else ""
    return HealthCheck("facts", ok=True, found=f"{len(facts.active)} active, {waiting} wait to be confirmed", hint=hint)
