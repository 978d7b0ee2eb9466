"""Fit the weights of the scorer: `python -m tests.fit_understanding [--figures] [--curve] [zh] [en]`.

Writes `sync/understanding/reading/weights-{zh,en}.bin` with their hashes, from `tests/data/statements` and the word
classes of this folder alone. The same data gives the same bytes on the same machine. `--figures` prints what the fit
is worth on writers that it has not seen; `--curve` repeats it with fewer messages.
"""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from sync.understanding.reading.weights import FOLDER, LANGUAGES
from tests.fit_understanding.data import Row, read_examples, read_rows, read_word_classes
from tests.fit_understanding.folds import (
    Networks,
    Predictions,
    choose_thresholds,
    fit_networks,
    measure,
    predict_unseen,
)
from tests.fit_understanding.network import CONTENT, Network
from tests.fit_understanding.quantise import calibrate, pack_weights

CURVE: Final = (0.25, 0.5)
READING: Final = ("keep", "own", "lasting")
DIGITS: Final = 5


def main(arguments: Sequence[str]) -> int:
    for language in [one for one in arguments if one in LANGUAGES] or LANGUAGES:
        rows, classes = read_rows(language), read_word_classes(language)
        examples = read_examples(rows, language, classes)
        predictions = predict_unseen(examples)
        if "--figures" in arguments:
            _print(f"{language}: {len(rows)} messages, writers not seen", predictions, rows)
        for share in CURVE if "--curve" in arguments else ():
            _print(f"{language}: fitted on {share:.0%} of the messages", predict_unseen(examples, share), rows)
        fitted = fit_networks(examples)
        header = _header(language, len(rows), fitted, predictions)
        header |= {"scale": fitted.stored.scale, "code_book": fitted.stored.values}
        content = pack_weights(
            header, classes, fitted.keys + fitted.content_keys, [bytes(row) for row in fitted.stored.codes.tolist()]
        )
        path = Path(str(FOLDER)) / f"weights-{language}.bin"
        path.write_bytes(content)
        path.with_suffix(".sha256").write_text(f"{hashlib.sha256(content).hexdigest()}  {path.name}\n", "ascii")
        print(f"{path.name}: {len(content):,} bytes, active {header['active']}, candidate {header['candidate']}")
    return 0


def _header(language: str, messages: int, fitted: Networks, predictions: Predictions) -> dict[str, Any]:
    examples = predictions.examples
    chosen = choose_thresholds(predictions, np.ones(len(examples), dtype=bool))
    labelled = np.array([one.is_labelled for one in examples])
    own = np.array([one.keep or not one.is_other for one in examples])
    lasting = np.array([one.keep or one.is_other for one in examples])
    calibration = {
        "keep": (chosen.slope, chosen.offset),
        "own": calibrate(predictions.heads["own"][labelled], own[labelled]),
        "lasting": calibrate(predictions.heads["lasting"], lasting),
    }
    return {
        "language": language,
        "fitted_on": f"tests/data/statements/{language}.jsonl, {messages} messages",
        "units": fitted.reading.inputs.shape[1],
        "bias": _rounded(fitted.reading.bias),
        "content_bias": _rounded(fitted.content.bias),
        "heads": {head: _head(fitted.reading, head) for head in READING}
        | {head: _head(fitted.content, head) for head in CONTENT},
        "calibration": {head: [round(value, DIGITS) for value in pair] for head, pair in calibration.items()},
        "active": chosen.active,
        "candidate": chosen.candidate,
    }


def _head(network: Network, head: str) -> list[tuple[float, list[float]]]:
    place = network.places[head]
    return [
        (round(float(offset), DIGITS), _rounded(row))
        for offset, row in zip(network.offsets[place], network.outputs[:, place].T, strict=True)
    ]


def _rounded(values: Any) -> list[float]:
    return [round(float(value), DIGITS) for value in values]


def _print(title: str, predictions: Predictions, rows: Sequence[Row]) -> None:
    statements = sum(span["owner"] == "user" and span["lasting"] for row in rows for span in row["spans"])
    print(f"== {title}")
    for name, figures in measure(predictions, statements):
        print(f"  {name}: {figures}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
