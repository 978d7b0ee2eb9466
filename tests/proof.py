"""What is exhaustive: `make test` runs the first cases and few examples, `make proof` all of them."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def first_in_test(cases: Iterable[object], count: int = 1) -> list[Any]:
    """Parameters for `parametrize`; all but the first `count` have the marker `proof`."""
    return [pytest.param(case, marks=() if number < count else pytest.mark.proof) for number, case in enumerate(cases)]


def examples(count: int) -> int:
    """`max_examples` of a test that tries `count` in `make proof`; a quarter of them in `make test`."""
    return max(min(count, 5), count * settings().max_examples // 100)
