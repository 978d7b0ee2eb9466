"""`doctor`: what is broken, and what to do about it."""

from pathlib import Path

from bridge.hooks.health import check_hooks
from sync.app import App
from sync.contract.health import HealthJson, health_to_json
from sync.startup.doctor import check_environment


async def doctor(app: App) -> HealthJson:
    """Check the installation; changes nothing."""
    around = await check_environment(app.settings, is_sidecar=app.is_sidecar)
    around.append(check_hooks(app.settings.data_dir, Path.home()))
    return health_to_json([*around, *await app.check_health()])
