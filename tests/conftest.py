"""What every test may ask for. Fixtures of the local cloud come from tests.cloud.fixtures."""

import os
import signal
import sys

from hypothesis import HealthCheck, settings

# No test measures wall-clock time: a busy machine makes a correct example slow.
settings.register_profile("proof", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100)
settings.register_profile("tests", settings.get_profile("proof"), max_examples=25)
settings.load_profile("tests")
sys.dont_write_bytecode = False  # each worker and each process of the program would compile all modules again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("XIAOBAI_RECALL__EMBEDDINGS", "off")  # the models are for the tests that ask for them
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # in the background of a shell: the programs would not hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.cloud.fixtures"]
