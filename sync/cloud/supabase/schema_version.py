"""Whether a project has the schema that this program needs, and what to run if it does not."""

from typing import Final

from sync.errors import SchemaMismatch

REQUIRED_VERSION: Final = 3  # what `ai_memory_schema_version()` answers after the last of these files
# The files of sql/migrations in order.
MIGRATIONS: Final = (
    "20261125000000_ai_memory_original.sql",
    "20261125000100_ai_memory_tables.sql",
    "20261125000200_ai_memory_rules.sql",
    "20261125000300_ai_memory_devices.sql",
    "20261125000400_ai_memory_sync.sql",
    "20261125000500_ai_memory_realtime.sql",
    "20261125000600_ai_memory_admin.sql",
    "20261125000700_ai_memory_legacy.sql",
    "20261125000800_ai_memory_access.sql",
)


def check_version(version: object) -> None:
    """Raise SchemaMismatch if the project's version is below the required one; a newer project is accepted."""
    if not isinstance(version, int) or version < REQUIRED_VERSION:
        raise mismatch_error(version if isinstance(version, int) else 0)


def mismatch_error(version: int, detail: str = "") -> SchemaMismatch:
    """The error for a project at `version` (0: without our schema), with the files to run."""
    return SchemaMismatch(
        f"the project has schema version {version}, this program needs {REQUIRED_VERSION}{detail}",
        hint=f"Run these files of sql/migrations on the Supabase project, in order: {', '.join(MIGRATIONS)}.",
    )
