"""A sample of the memories whose database is lost or damaged; `make crash` uses more. The planted bugs are found."""

from typing import Final

import pytest

from tests.crash.faults.recovery_cases import BUGS, DAMAGES, trial
from tests.proof import first_in_test
from tests.simulation.planted_bugs import PlantedBug

SAMPLE: Final = 4 * len(DAMAGES)


@pytest.mark.parametrize("seed", first_in_test(range(SAMPLE), len(DAMAGES)))
def test_the_memory_is_usable_and_every_line_is_there_once(seed: int) -> None:
    assert trial(seed)[1] == ""


@pytest.mark.parametrize("bug", first_in_test(BUGS), ids=[bug.name for bug in BUGS])
def test_a_planted_bug_is_detected(bug: PlantedBug) -> None:
    with bug.apply_patches():
        assert trial(bug.seed)[1], f"seed {bug.seed} shows it no longer"
