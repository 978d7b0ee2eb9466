"""Fit what follows a network: its code book of 16 values, and the slope and offset of a head; write the weights."""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from sync.understanding.reading.weights import KEY_BYTES

VALUES: Final = 16
LARGEST: Final = 127
ROUNDS: Final = 25

Floats = NDArray[np.float32]


class Stored(msgspec.Struct, frozen=True):
    """Weights as they are stored: values of a code book by their number, times a scale."""

    scale: float
    values: list[int]
    codes: NDArray[np.uint8]

    @property
    def weights(self) -> Floats:
        """The weights as they are read again."""
        return (np.array(self.values, dtype=np.float32) * self.scale)[self.codes]


def store(weights: Floats) -> Stored:
    """Find the code book that is nearest to the weights (Lloyd)."""
    scale = float(np.abs(weights).max()) / LARGEST
    flat = np.sort((weights / scale).ravel())
    centres = np.quantile(flat, (np.arange(VALUES) + 0.5) / VALUES)
    for _ in range(ROUNDS):
        edges = np.searchsorted(flat, (centres[1:] + centres[:-1]) / 2)
        centres = np.array(
            [part.mean() if len(part) else centre for part, centre in zip(np.split(flat, edges), centres, strict=True)]
        )
    codes = np.searchsorted((centres[1:] + centres[:-1]) / 2, weights / scale).astype(np.uint8)
    return Stored(scale, np.round(centres).astype(int).tolist(), codes)


def calibrate(logits: Floats, answers: NDArray[np.bool_]) -> tuple[float, float]:
    """The slope and offset with which logits are probabilities (Platt), by Newton's method."""
    columns = np.stack([logits.astype(np.float64), np.ones(len(logits))], axis=1)
    found = np.array([1.0, 0.0])
    for _ in range(30):
        part = 1 / (1 + np.exp(-(columns @ found)))
        slope = columns.T @ (part - answers)
        bend = (columns * (part * (1 - part))[:, None]).T @ columns + 1e-6 * np.eye(2)
        found = found - np.linalg.solve(bend, slope)
    return float(found[0]), float(found[1])


def pack_weights(
    header: dict[str, Any], words: Mapping[str, str], keys: Sequence[int], codes: Sequence[bytes]
) -> bytes:
    """Write weights. `header`: all but the sizes; `codes`: of each key, a byte a unit, its number in the code book."""
    packed = zlib.compress("\n".join(f"{word} {name}" for word, name in words.items()).encode(), 9)
    line = json.dumps({**header, "words": len(packed), "features": len(keys)}, ensure_ascii=False)
    nibbles = b"".join(bytes(low | high << 4 for low, high in zip(row[::2], row[1::2], strict=True)) for row in codes)
    return line.encode() + b"\n" + packed + b"".join(key.to_bytes(KEY_BYTES, "big") for key in keys) + nibbles
