"""Which migrations an older project must run."""

import re

import pytest

from sync.cloud.supabase import schema_version
from sync.errors import SchemaMismatch
from tests.sidecar import REPOSITORY


def test_every_migration_is_named_once_and_in_order() -> None:
    paths = (REPOSITORY / "sql" / "migrations").glob("*.sql")
    assert list(schema_version.MIGRATIONS) == sorted(path.name for path in paths)


def test_the_newest_migration_answers_the_version_that_is_needed() -> None:
    sql = "".join(path.read_text("utf-8") for path in sorted((REPOSITORY / "sql" / "migrations").glob("*.sql")))
    definition = sql.rpartition("function public.ai_memory_schema_version() returns")[2]
    assert f"select {schema_version.REQUIRED_VERSION}" in definition.partition("$$;")[0]


def test_the_guide_has_a_row_for_every_migration_and_every_argument_of_a_sync() -> None:
    guide = (REPOSITORY / "sql" / "README.md").read_text("utf-8")
    paths = sorted((REPOSITORY / "sql" / "migrations").glob("*.sql"))
    for path in paths:
        assert path.name in guide, path.name
    sql = "".join(path.read_text("utf-8") for path in paths)
    *_, newest = re.finditer(r"function public\.ai_memory_sync\(([^)]*)\)", sql)
    arguments = re.findall(r"\bp_\w+", newest[1])
    assert "p_after_event" in arguments
    for argument in arguments:
        assert f"| `{argument}` |" in guide, argument


@pytest.mark.parametrize("version", [None, 0, "one"])
def test_the_error_for_an_older_project_names_the_files_to_run(version: object) -> None:
    with pytest.raises(SchemaMismatch) as raised:
        schema_version.check_version(version)
    assert ", ".join(schema_version.MIGRATIONS) in raised.value.hint


def test_a_project_of_the_version_before_runs_the_new_files_alone() -> None:
    with pytest.raises(SchemaMismatch) as raised:
        schema_version.check_version(3)
    assert "schema version 3" in raised.value.message
    assert f": {', '.join(schema_version.FILES[4])}." in raised.value.hint


@pytest.mark.parametrize("version", [1, 2])
def test_a_project_from_before_the_first_release_is_not_told_to_run_what_fails(version: int) -> None:
    with pytest.raises(SchemaMismatch) as raised:
        schema_version.check_version(version)
    assert f"schema version {version}" in raised.value.message
    aside, _, then = raised.value.hint.partition("set_aside_schema_2.sql")
    assert "cannot be brought up to date" in aside
    assert ", ".join(schema_version.MIGRATIONS) in then


def test_a_newer_project_is_accepted() -> None:
    schema_version.check_version(schema_version.REQUIRED_VERSION + 1)
