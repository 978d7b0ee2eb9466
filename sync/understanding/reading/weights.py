"""The weights of the scorer as a file: a JSON line, then word classes, keys of features, and a row of weights for each.

A row is one integer with a lane of 32 bits a unit and a last lane that counts rows, so that a sum of rows is a sum of
integers. In the file a weight is 4 bits, the number of a value in the code book.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

import msgspec

from sync.understanding.reading.sentence_features import KEY_BITS

LANGUAGES: Final = ("zh", "en")
FOLDER: Final = resources.files(__package__)
_OFFSET: Final = 128  # added to each weight of a row, so that no lane is negative
KEY_BYTES: Final = KEY_BITS // 8

Head = list[tuple[float, list[float]]]  # of each answer: its offset, and its weight for each hidden unit


class ScorerWeights(msgspec.Struct, frozen=True):
    """The weights of one language. `rows`: of each feature's key. `words`: the class of each word."""

    language: str
    name: str  # the beginning of the file's hash
    units: int
    scale: float
    bias: list[float]
    content_bias: list[float]
    heads: dict[str, Head]
    calibration: dict[str, list[float]]  # slope and offset of a head's logit
    active: float  # `keep` from which a sentence is certain
    candidate: float  # and likely
    words: Mapping[str, str]
    rows: Mapping[int, int]

    def unpack(self, total: int) -> list[float]:
        """The weights of a sum of rows."""
        *lanes, count = struct.unpack(f"<{self.units + 1}I", total.to_bytes(4 * (self.units + 1), "little"))
        return [(lane - _OFFSET * count) * self.scale for lane in lanes]


def load_weights(language: str, folder: Traversable = FOLDER) -> ScorerWeights | None:
    """Read the weights of a language; None if they are missing or their hash is not the one beside them."""
    try:
        content = folder.joinpath(f"weights-{language}.bin").read_bytes()
        expected = folder.joinpath(f"weights-{language}.sha256").read_text("ascii").split()[0]
    except (OSError, IndexError):
        return None
    digest = hashlib.sha256(content).hexdigest()
    return _parse(content, digest[:8]) if digest == expected else None


def _parse(content: bytes, name: str) -> ScorerWeights:
    line, _, body = content.partition(b"\n")
    header = json.loads(line)
    words, rest, size = body[: header["words"]], body[header["words"] :], header["features"] * KEY_BYTES
    keys, nibbles = rest[:size], rest[size:]
    units, width = header["units"], header["units"] // 2
    pairs = [_lanes(header["code_book"], pair) for pair in range(256)]
    rows = {}
    for number in range(header["features"]):
        row = 1 << (32 * units)
        for place, pair in enumerate(nibbles[number * width : (number + 1) * width]):
            row |= pairs[pair] << (64 * place)
        rows[int.from_bytes(keys[number * KEY_BYTES : (number + 1) * KEY_BYTES], "big")] = row
    known = dict(pair.split(" ") for pair in zlib.decompress(words).decode().split("\n"))
    header |= {"name": name, "words": known, "rows": rows}
    return ScorerWeights(**{field: header[field] for field in ScorerWeights.__struct_fields__})


def _lanes(code_book: Sequence[int], pair: int) -> int:
    """Two lanes of a row: the weights of a byte."""
    return (code_book[pair & 15] + _OFFSET) | ((code_book[pair >> 4] + _OFFSET) << 32)
