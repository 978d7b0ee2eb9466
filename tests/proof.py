"""Long lists of cases: `make test` runs the first few, `make proof` the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_in_test(cases: Iterable[object], count: int = 1) -> list[Any]:
    """Parameters for `parametrize`; all but the first `count` have the marker `proof`."""
    return [pytest.param(case, marks=() if number < count else pytest.mark.proof) for number, case in enumerate(cases)]
