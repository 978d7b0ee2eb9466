"""A check of `doctor` that fails itself is a finding, never a traceback."""

from sync.errors import StorageBusy
from sync.startup.checks import FAILED_CHECK_HINT, HealthCheck, run_checks


async def test_whatever_a_check_raises_is_its_finding_and_the_next_ones_run() -> None:
    sound = HealthCheck("sound", ok=True, found="well")

    def broken() -> HealthCheck:
        raise KeyError("a secret of the user")

    async def busy() -> HealthCheck:
        raise StorageBusy("another process writes")

    async def two() -> list[HealthCheck]:
        return [sound, sound]

    found = await run_checks({"broken": broken, "busy": busy, "two": two})
    assert found == [
        HealthCheck("broken", ok=False, found="this check failed (KeyError)", hint=FAILED_CHECK_HINT),
        HealthCheck("busy", ok=False, found="another process writes", hint=StorageBusy.default_hint),
        sound,
        sound,
    ]
