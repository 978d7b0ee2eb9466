"""How much of a generated corpus is found, on seeds that no rule was developed on."""

from collections.abc import Callable, Iterator

import pytest

from sync.redaction import Redactor
from tests.redaction_corpus import Case, misses, people, readme, tokens, vendors

REDACTOR = Redactor()


@pytest.mark.parametrize("seed", [101, 102])
@pytest.mark.parametrize(("cases", "recall"), [(readme, 0.95), (vendors, 0.97), (tokens, 0.998), (people, 0.99)])
def test_of_what_is_made_most_is_found_and_look_alikes_stay(
    cases: Callable[[int], Iterator[Case]], recall: float, seed: int
) -> None:
    leaks, false, secrets, others = misses(cases(seed), REDACTOR)

    assert len(leaks) <= (1 - recall) * secrets, leaks
    assert len(false) <= 0.01 * others, false
