"""The weights of the scorer as a file."""

import hashlib
from pathlib import Path

import pytest

from sync.understanding.reading.weights import FOLDER, LANGUAGES, load_weights
from tests.fit_understanding.quantise import pack_weights

HEADER = {
    "language": "zh",
    "units": 2,
    "scale": 0.5,
    "code_book": list(range(-8, 8)),
    "bias": [0.0, 1.0],
    "content_bias": [0.0, 0.0],
    "heads": {"keep": [(0.25, [1.0, -1.0])]},
    "calibration": {"keep": [1.0, 0.0]},
    "active": 0.9,
    "candidate": 0.5,
}


def write(folder: Path, content: bytes, digest: str | None = None) -> None:
    (folder / "weights-zh.bin").write_bytes(content)
    (folder / "weights-zh.sha256").write_text(digest or hashlib.sha256(content).hexdigest())


def test_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    write(tmp_path, pack_weights(HEADER, {"花生": "0120", "cat": "0031"}, [7, 70_000], [bytes([0, 15]), bytes([8, 9])]))

    weights = load_weights("zh", tmp_path)

    assert weights is not None
    assert weights.words == {"花生": "0120", "cat": "0031"}
    assert weights.unpack(weights.rows[7]) == [-4.0, 3.5]
    assert weights.unpack(weights.rows[70_000]) == [0.0, 0.5]
    assert [list(one) for one in weights.heads["keep"]] == [[0.25, [1.0, -1.0]]]


def test_a_sum_of_rows_is_the_sum_of_their_weights(tmp_path: Path) -> None:
    write(tmp_path, pack_weights(HEADER, {"a": "0000"}, [1, 2], [bytes([0, 15]), bytes([1, 0])]))
    weights = load_weights("zh", tmp_path)
    assert weights is not None

    assert weights.unpack(1000 * weights.rows[1] + weights.rows[2]) == [-4003.5, 3496.0]


def test_weights_with_another_hash_or_none_are_not_read(tmp_path: Path) -> None:
    content = pack_weights(HEADER, {"a": "0000"}, [1], [bytes([0, 1])])
    write(tmp_path, content, "0" * 64)
    assert load_weights("zh", tmp_path) is None

    write(tmp_path, content, " ")
    assert load_weights("zh", tmp_path) is None

    assert load_weights("en", tmp_path) is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_committed_weights_have_their_hash(language: str) -> None:
    assert load_weights(language) is not None


def test_the_committed_weights_are_at_most_500_kb() -> None:
    assert sum(len(FOLDER.joinpath(f"weights-{language}.bin").read_bytes()) for language in LANGUAGES) <= 500_000
