"""Which migrations a project needs for this program, so that an older project can be told what to run."""

from typing import Final

from sync.errors import SchemaMismatch

# What `ai_memory_schema_version()` answers, and the files of sql/migrations that bring a project there, in order.
MIGRATIONS: Final[dict[int, tuple[str, ...]]] = {
    1: (
        "20261121000000_ai_memory_original.sql",
        "20261121000100_ai_memory_tables.sql",
        "20261121000200_ai_memory_rules.sql",
        "20261121000300_ai_memory_devices.sql",
        "20261121000400_ai_memory_sync.sql",
        "20261121000500_ai_memory_access.sql",
    ),
    2: (
        "20261122000100_ai_memory_device_keys.sql",
        "20261122000200_ai_memory_realtime.sql",
        "20261122000300_ai_memory_partitions.sql",
        "20261122000400_ai_memory_checkpoints.sql",
        "20261122000500_ai_memory_legacy.sql",
        "20261122000510_ai_memory_foreign.sql",
        "20261122000600_ai_memory_admin.sql",
        "20261122000700_ai_memory_cursor_time.sql",
        "20261122000900_ai_memory_schema_2.sql",
        "20261122001000_ai_memory_document_base.sql",  # a project without it works, see `cloud.exchange`
    ),
    3: (
        "20261124000100_ai_memory_device_proof.sql",
        "20261124000200_ai_memory_limits.sql",
        "20261124000300_ai_memory_hardening.sql",
        "20261124000900_ai_memory_schema_3.sql",
    ),
}
REQUIRED_VERSION: Final = max(MIGRATIONS)


def check_version(version: object) -> None:
    """Raise SchemaMismatch where the project's version is below the needed one; a newer project is accepted."""
    if not isinstance(version, int) or version < REQUIRED_VERSION:
        raise mismatch_error(version if isinstance(version, int) else 0)


def mismatch_error(version: int, detail: str = "") -> SchemaMismatch:
    """The error for a project at `version` (0: none of ours), naming what to run."""
    files = [file for step, names in sorted(MIGRATIONS.items()) if step > version for file in names]
    return SchemaMismatch(
        f"the project has schema version {version}, this program needs {REQUIRED_VERSION}{detail}",
        hint=f"Run these files of sql/migrations on the Supabase project, in order: {', '.join(files)}.",
    )
