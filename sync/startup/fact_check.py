"""The check of the facts for `doctor`."""

from typing import TYPE_CHECKING

from sync.startup.checks import HealthCheck
from sync.understanding.reading.scorer import broken_weights

if TYPE_CHECKING:  # loaded at its first use
    from sync.understanding.service import FactService


async def check_facts(service: "FactService") -> HealthCheck:
    """How many facts there are, how many wait for the user, and whether what reads them is whole."""
    if broken := broken_weights():
        found = f"the weights that read messages are missing or damaged: {', '.join(broken)}"
        return HealthCheck(
            "facts", ok=False, found=found, hint="Install again; until then only certain forms are read."
        )
    facts = await service.current()
    if not facts.facts:
        return HealthCheck("facts", ok=None, found="none")
    waiting = len(facts.candidates)
    hint = "`xiaobai-memory facts review` shows them." if waiting else ""
    return HealthCheck("facts", ok=True, found=f"{len(facts.active)} active, {waiting} wait to be confirmed", hint=hint)
