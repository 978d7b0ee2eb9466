"""What every test may ask for. Fixtures of the local cloud come from tests.cloud.fixtures."""

import os

os.environ.setdefault("XIAOBAI_RECALL__EMBEDDINGS", "off")  # the models are for the tests that ask for them

pytest_plugins = ["tests.cloud.fixtures"]
