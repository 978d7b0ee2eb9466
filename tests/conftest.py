"""What every test may ask for. Fixtures of the local cloud come from tests.cloud.fixtures."""

pytest_plugins = ["tests.cloud.fixtures"]
