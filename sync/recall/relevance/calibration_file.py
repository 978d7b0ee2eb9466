"""Load the parameters of relevance, once."""

import json
from functools import cache
from importlib.resources import files

from sync.recall.relevance.calibration import Calibration


@cache
def load_calibration() -> Calibration:
    return Calibration.from_json(json.loads(files(__package__).joinpath("calibration.json").read_text("utf-8")))
