"""The simulation detects each planted bug, and soon."""

from statistics import median
from typing import Final

import pytest

import tests.fake_cloud.documents
from tests.contract import test_cloud_port as contract
from tests.contract.cloud_backends import FakeBackend
from tests.proof import first_in_test
from tests.simulation.planted_bugs import BUGS, PlantedBug
from tests.simulation.simulator import run
from tests.simulation.workload.plan import SimulationPlan

FEWEST: Final = 20
WITHIN: Final = 50  # runs, for one half of them


@pytest.mark.parametrize("bug", first_in_test(BUGS, 3), ids=[bug.name for bug in BUGS])
def test_a_planted_bug_is_detected(bug: PlantedBug) -> None:
    assert bug.find_defects(bug.seed), f"seed {bug.seed} shows it no longer: make sim-bugs looks for another"


@pytest.mark.proof
@pytest.mark.parametrize("plan", {(bug.seed, bug.extra_action_set): bug.plan(bug.seed) for bug in BUGS}.values())
def test_these_runs_find_nothing_else(plan: SimulationPlan) -> None:
    assert run(plan).defects == ()


async def test_an_older_document_over_a_newer_one_is_found_by_the_contract_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No run detects it: the device's next round sends its newest document, and all end with one."""
    client = await (await contract.signed_in(FakeBackend())).register()
    await contract.test_a_document_is_stored_only_when_it_is_newer(client)
    monkeypatch.setattr(tests.fake_cloud.documents, "_refusal", lambda *_: None)
    with pytest.raises(AssertionError):
        await contract.test_a_document_is_stored_only_when_it_is_newer(client)


def test_half_of_them_are_detected_within_fifty_runs() -> None:
    assert len(BUGS) >= FEWEST
    assert median(bug.seed + 1 for bug in BUGS) <= WITHIN


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_bug_can_be_planted(bug: PlantedBug) -> None:
    with bug.apply_patches():
        pass
