"""Would the tests notice? The migrations broken on purpose, and the matrix run on each (see sql_mutants.py)."""

import re
from collections.abc import Iterator

import psycopg
import pytest

from tests.cloud.fixtures import running_cloud
from tests.integration.sql.connections import Cloud, Connection, become, open_cloud
from tests.integration.sql.permissions import matrix
from tests.integration.sql.permissions.behaviours import BEHAVIOURS, RACES
from tests.integration.sql.permissions.fixture_rows import FixtureRows, actors, insert_fixture_rows, rolled_back
from tests.integration.sql.permissions.matrix import DirectAccess
from tests.integration.sql.permissions.mutants import MUTANTS, RACY, Mutant
from tests.integration.sql.permissions.stage import Stage
from tests.proof import first_in_test

LEAST = 25


@pytest.fixture(scope="module")
def project() -> Iterator[Cloud]:
    with running_cloud() as running, open_cloud(running.database_url) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def scene(project: Cloud) -> FixtureRows:
    return insert_fixture_rows(project.admin)


def wrong(admin: Connection, scene: FixtureRows, about: str = "") -> Iterator[str]:
    """What is not as it should be, a sentence each: first of the objects that `about` names, then of all others."""
    door, policies = DirectAccess(admin, scene), DirectAccess(admin, scene, all_granted=True)
    with rolled_back(admin) as cursor:
        become(cursor, "none", None)
        yield from matrix.wrong_grants(cursor, door.catalogue)
    named = re.findall(r"\bpublic\.(ai_memory\w*)", about)
    checks = list(door.catalogue.checks(actors(scene)))
    of_policies = list(door.catalogue.checks_of_policies(actors(scene)))
    for near in (True, False):
        yield from matrix.failures(door, [c for c in checks if (c.subject in named) is near])
        told = matrix.expected_of_policies
        yield from matrix.failures(policies, [c for c in of_policies if (c.subject in named) is near], told)
        if near:
            yield from misbehaving(Stage(admin, scene))


def misbehaving(stage: Stage) -> Iterator[str]:
    for behave in BEHAVIOURS:
        try:
            with rolled_back(stage.admin):
                behave(stage)
        except (AssertionError, psycopg.Error) as error:
            yield f"{behave.__name__}: {error}"


def test_unbroken_migrations_pass(project: Cloud, scene: FixtureRows) -> None:
    assert list(wrong(project.admin, scene)) == []


@pytest.mark.parametrize("mutant", first_in_test(m for m in MUTANTS if not m.racy), ids=lambda mutant: mutant.name)
def test_it_is_noticed_that(project: Cloud, scene: FixtureRows, mutant: Mutant) -> None:
    with rolled_back(project.admin) as cursor:
        mutant.apply(cursor)
        found = next(wrong(project.admin, scene, mutant.about), None)
    assert found is not None, mutant.danger


@pytest.mark.proof
def test_unbroken_migrations_pass_in_races(project: Cloud) -> None:
    run_races(project)


def run_races(project: Cloud) -> None:
    for race in RACES:
        race(project)


@pytest.mark.proof
@pytest.mark.parametrize("mutant", RACY, ids=lambda mutant: mutant.name)
def test_it_is_noticed_in_a_race_that(project: Cloud, mutant: Mutant) -> None:
    with mutant.committed(project.admin), pytest.raises((AssertionError, psycopg.Error)):
        run_races(project)


def test_there_are_enough_of_them() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= LEAST
