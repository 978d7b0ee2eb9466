"""What every test may ask for. Fixtures of the local cloud come from tests.cloud.fixtures."""

import os

from hypothesis import HealthCheck, settings

# No test measures wall-clock time: a busy machine makes a correct example slow.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
os.environ.setdefault("XIAOBAI_RECALL__EMBEDDINGS", "off")  # the models are for the tests that ask for them

pytest_plugins = ["tests.cloud.fixtures"]
