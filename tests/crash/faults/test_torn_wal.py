"""A sample of the torn logs; `make crash` opens them all. CRASH_SEED chooses another sample."""

import math
import os
from typing import Final

import pytest

from tests.crash.faults.torn_wal import FULL_RUN, STRIDE, bases, boundary_cuts, trial
from tests.proof import first_in_test

SEED: Final = int(os.environ.get("CRASH_SEED", "0"))
BATCH: Final = 25


@pytest.mark.parametrize("batch", first_in_test(range(8)))
def test_the_commits_before_the_damage_are_there_whole_and_no_others(batch: int) -> None:
    begin = SEED + batch * BATCH
    outcomes = [trial(seed) for seed in range(begin, begin + BATCH)]
    assert [complaint for _, complaint in outcomes if complaint] == []


def test_the_full_run_meets_every_cut_at_a_frame_boundary() -> None:
    cuts = boundary_cuts()
    assert math.gcd(STRIDE, len(cuts)) == 1
    assert 2 * len(cuts) <= FULL_RUN
    assert [base.safe for base in bases()] == [0, 10]
