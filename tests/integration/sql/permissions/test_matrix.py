"""Every actor, verb, table, view and function: directly as the role, and through PostgREST."""

from collections.abc import Iterator

import httpx
import pytest

from tests.cloud.fixtures import Cloud as RunningCloud
from tests.cloud.fixtures import running_cloud
from tests.integration.sql.connections import Cloud, open_cloud
from tests.integration.sql.permissions import matrix
from tests.integration.sql.permissions.fixture_rows import FixtureRows, actors, insert_fixture_rows, rolled_back
from tests.integration.sql.permissions.matrix import Catalogue, Check, DirectAccess
from tests.integration.sql.permissions.postgrest_access import UNAUTHORIZED, PostgrestAccess
from tests.proof import first_in_test

LEAST = 120
ACTORS = (
    "other user",
    "anon key",
    "owner",
    "anonymous user",
    "revoked device",
    "session of a revoked device",
    "expired token",
    "service role",
)


@pytest.fixture(scope="module")
def running() -> Iterator[RunningCloud]:
    """A project of one's own: what a hole lets through would reach everything in it."""
    with running_cloud() as cloud:
        yield cloud


@pytest.fixture(scope="module")
def project(running: RunningCloud) -> Iterator[Cloud]:
    with open_cloud(running.database_url) as cloud:
        yield cloud


@pytest.fixture
def scene(project: Cloud) -> FixtureRows:
    """People of this test only: what an admin does through PostgREST is committed, for all rows."""
    return insert_fixture_rows(project.admin)


@pytest.fixture(scope="module")
def catalogue(project: Cloud) -> Catalogue:
    with rolled_back(project.admin) as cursor:
        return Catalogue.read(cursor)


def test_every_object_is_expected_and_everything_expected_exists(catalogue: Catalogue) -> None:
    assert len(list(catalogue)) == len(set(catalogue)), "one name, two functions"
    assert set(catalogue) ^ set(matrix.EXPECTED) == set()
    assert set(catalogue) ^ set(matrix.GRANTS) == set()
    assert set(catalogue.tables) ^ set(matrix.EXPECTED_OF_POLICIES) == set()


def test_the_roles_as_they_are(project: Cloud, scene: FixtureRows) -> None:
    access = DirectAccess(project.admin, scene)
    checks = list(access.catalogue.checks(actors(scene)))
    assert list(matrix.failures(access, checks)) == []
    assert len(checks) >= LEAST


def test_a_project_that_grants_nothing_by_itself_is_the_same() -> None:
    """Hosted projects since 2026: there a forgotten grant shows, as a forgotten revoke does elsewhere."""
    with running_cloud("--grants", "explicit") as running, open_cloud(running.database_url) as cloud:
        scene = insert_fixture_rows(cloud.admin)
        access = DirectAccess(cloud.admin, scene)
        assert list(matrix.failures(access, access.catalogue.checks(actors(scene)))) == []
        with rolled_back(cloud.admin) as cursor:
            assert list(matrix.wrong_grants(cursor, access.catalogue)) == []


def test_the_policies_alone_where_every_grant_was_given(project: Cloud, scene: FixtureRows) -> None:
    access = DirectAccess(project.admin, scene, all_granted=True)
    checks = list(access.catalogue.checks_of_policies(actors(scene)))
    assert list(matrix.failures(access, checks, matrix.expected_of_policies)) == []
    assert len(checks) >= LEAST


def test_the_grants_alone(project: Cloud, catalogue: Catalogue) -> None:
    with rolled_back(project.admin) as cursor:
        assert list(matrix.wrong_grants(cursor, catalogue)) == []


@pytest.mark.parametrize("name", first_in_test(ACTORS, 2))
def test_through_postgrest(running: RunningCloud, project: Cloud, catalogue: Catalogue, name: str) -> None:
    scene = insert_fixture_rows(project.admin)  # writes here are committed, so each actor has separate people
    (actor,) = [actor for actor in actors(scene) if actor.name == name]
    checks = list(catalogue.checks([actor]))
    assert len(checks) * len(ACTORS) >= LEAST
    with httpx.Client(base_url=running.url, trust_env=False, timeout=30) as client:
        access = PostgrestAccess(client, running, project.admin, scene, catalogue)
        expected = unauthorized if name == "expired token" else matrix.expected
        assert list(matrix.failures(access, checks, expected)) == []


def unauthorized(_: Check) -> str:
    return UNAUTHORIZED


def test_the_api_does_not_know_the_private_schema(running: RunningCloud) -> None:
    headers = {"apikey": running.secret_key, "authorization": f"Bearer {running.secret_key}"}
    with httpx.Client(base_url=f"{running.url}/rest/v1", headers=headers, trust_env=False, timeout=30) as client:
        assert client.get("/ai_memory_events_00").status_code == httpx.codes.NOT_FOUND
        asked = client.get("/ai_memory_events_00", headers={"accept-profile": "ai_memory_private"})
        assert (asked.status_code, asked.json()["code"]) == (httpx.codes.NOT_ACCEPTABLE, "PGRST106")


@pytest.mark.parametrize("outcome", ["reads everybody's", "reads nothing"])
def test_an_outcome_that_is_not_the_expected_one_is_a_failure(project: Cloud, scene: FixtureRows, outcome: str) -> None:
    access = DirectAccess(project.admin, scene)
    check = Check(actors(scene)[0], "select", "ai_memory")
    assert list(matrix.failures(access, [check], lambda _: outcome)) == [
        f"owner: select ai_memory: expected {outcome}, but reads own"
    ]
