"""What holds for every test that Hypothesis feeds."""

from hypothesis import HealthCheck, settings


def test_no_example_is_measured_by_the_clock() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
