"""The longest increasing subsequence is increasing, and no longer one exists."""

from itertools import combinations, pairwise

import pytest

from sync.sequences import longest_increasing_subsequence


@pytest.mark.parametrize("values", [[], [3], [1, 2, 3], [3, 2, 1], [2, 2], [0, 4, 1, 5, 2, 3]])
def test_the_longest_increasing_subsequence(values: list[int]) -> None:
    indices = longest_increasing_subsequence(values)
    assert all(low < high and values[low] < values[high] for low, high in pairwise(indices))
    longer = combinations(values, len(indices) + 1)
    assert not any(all(low < high for low, high in pairwise(chosen)) for chosen in longer)
