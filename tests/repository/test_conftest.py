"""What holds for every test."""

import os
import sys

from hypothesis import HealthCheck, settings


def test_no_example_is_measured_by_the_clock() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_no_process_compiles_the_program_again() -> None:
    assert not sys.dont_write_bytecode
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
