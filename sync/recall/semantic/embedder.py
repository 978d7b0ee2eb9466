"""The port of embedding models, and which part of a text they read. Pure.

A vector is a string of little-endian float32, so that it can be passed on without numpy. Models read a few sentences
well and long texts badly: of an item the beginning is embedded, of a query the end, which has its current subject.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

PASSAGE_LENGTH: Final = 256.0  # of an item, in Chinese characters; four Latin letters count as one
QUERY_LENGTH: Final = 96.0  # shorter, because a search waits for it
LATIN_WEIGHT: Final = 0.25
FIRST_UNSPACED_CHARACTER: Final = "\u2e80"  # from here on, one character is about one word


class EmbeddingFailed(Exception):
    """There are no vectors. The message says why, and contains no text."""


class ModelPart(NamedTuple):
    """The numbers `start` to `stop` of a vector are those of one model."""

    name: str
    start: int
    stop: int


class Embedder(Protocol):
    """Turns texts into vectors. `batch`: the best number of texts in one call. Calls may raise EmbeddingFailed."""

    batch: int

    @property
    def is_ready(self) -> bool:
        """Whether a text can be embedded without loading models first."""

    async def identity(self) -> str:
        """The model's name and dimension. Vectors of another identity are not comparable."""

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[bytes]:
        """One vector for each text, all of one length. `query`: whether the texts are queries or items."""

    async def close(self) -> None:
        """Release processes and connections for good."""


def passage_of(text: str) -> str:
    return text[: _fitting_length(text, PASSAGE_LENGTH)]


def query_tail_of(text: str) -> str:
    count = _fitting_length(text[::-1], QUERY_LENGTH)
    return text[len(text) - count :]


def is_dense(text: str) -> bool:
    """Whether a text is mainly in a script without spaces, whose vectors form a cluster of their own."""
    letters = [character for character in text if character.isalpha()]
    return sum(character >= FIRST_UNSPACED_CHARACTER for character in letters) * 3 > len(letters)


def _fitting_length(text: str, limit: float) -> int:
    """The number of characters, from the front, that fit into the limit."""
    for at, character in enumerate(text):
        limit -= 1.0 if character >= FIRST_UNSPACED_CHARACTER else LATIN_WEIGHT
        if limit < 0:
            return at
    return len(text)
