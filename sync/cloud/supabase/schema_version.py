"""Whether a project has the schema that this program needs, and what to run if it does not."""

from typing import Final

from sync.errors import SchemaMismatch

REQUIRED_VERSION: Final = 4  # what `ai_memory_schema_version()` answers after the last of these files
FIRST_VERSION: Final = 3  # the first that later files continue; 1 and 2 were never released
# The files of sql/migrations in order, by the version that the last of them makes.
FILES: Final = {
    3: (
        "20261125000000_ai_memory_original.sql",
        "20261125000100_ai_memory_tables.sql",
        "20261125000200_ai_memory_rules.sql",
        "20261125000300_ai_memory_devices.sql",
        "20261125000400_ai_memory_sync.sql",
        "20261125000500_ai_memory_realtime.sql",
        "20261125000600_ai_memory_admin.sql",
        "20261125000700_ai_memory_legacy.sql",
        "20261125000800_ai_memory_access.sql",
    ),
    4: (
        "20261127000000_ai_memory_authors.sql",
        "20261127000100_ai_memory_costs.sql",
        "20261127000200_ai_memory_fleet.sql",
    ),
}
MIGRATIONS: Final = tuple(name for names in FILES.values() for name in names)


def check_version(version: object) -> None:
    """Raise SchemaMismatch if the project's version is below the required one; a newer project is accepted."""
    if not isinstance(version, int) or version < REQUIRED_VERSION:
        raise mismatch_error(version if isinstance(version, int) else 0)


def mismatch_error(version: int, detail: str = "") -> SchemaMismatch:
    """The error for a project at `version` (0: without our schema), with the files to run."""
    missing = [name for made, names in FILES.items() if made > version for name in names]
    hint = f"Run these files of sql/migrations on the Supabase project, in order: {', '.join(missing or MIGRATIONS)}."
    if 0 < version < FIRST_VERSION:
        hint = (
            f"Schema {version} is from before the first release and cannot be brought up to date. Run"
            f" sql/set_aside_schema_2.sql, which keeps its rows, and then what is new. {hint}"
            " The devices send their events again."
        )
    return SchemaMismatch(
        f"the project has schema version {version}, this program needs {REQUIRED_VERSION}{detail}", hint=hint
    )
