"""A sample of the damaged databases; `make crash` opens a thousand. CRASH_SEED chooses another sample."""

import os
from typing import Final

import pytest

from tests.crash.faults.corrupt_databases import DAMAGES, trial
from tests.proof import first_in_test

SEED: Final = int(os.environ.get("CRASH_SEED", "0"))
BATCH: Final = len(DAMAGES)
ONCE_FAILED: Final = (
    20,
    30,
    84,
    356,
    597,
    932,
)  # a number too large, a page twice, a schema that is no text, a key that is no number, a lost replica


@pytest.mark.parametrize("batch", first_in_test(range(8)))
def test_the_damaged_file_is_kept_readable_rows_survive_and_pending_events_stay_pending(batch: int) -> None:
    begin = SEED + batch * BATCH
    outcomes = [trial(seed) for seed in range(begin, begin + BATCH)]
    assert [complaint for _, complaint in outcomes if complaint] == []


@pytest.mark.parametrize("seed", first_in_test(ONCE_FAILED))
def test_a_former_failure_stays_fixed(seed: int) -> None:
    assert trial(seed)[1] == ""
