"""What turns texts into vectors: the port, and how much of a text is looked at. Pure.

Decisions
    A vector is a string of little-endian float32, so that whoever has no numpy can still pass it on.
    Models read a few sentences well and whole pages badly and slowly: of a kept text the beginning counts, of a
    question the end, where a dialogue says what it is about.
"""

from collections.abc import Sequence
from typing import Final, Protocol

PASSAGE_LENGTH: Final = 256.0  # of a kept text, in characters of Chinese; four Latin letters weigh as one
QUERY_LENGTH: Final = 96.0  # of a question: its vector is waited for
LATIN_WEIGHT: Final = 0.25
FIRST_UNSPACED_CHARACTER: Final = "\u2e80"  # from here on a character is about a word


class EmbeddingFailed(Exception):
    """No vectors came; the message says why without any of the texts."""


class Embedder(Protocol):
    """Texts → vectors. `batch`: how many texts one call takes best. Every call may raise Unembedded."""

    batch: int

    async def identity(self) -> str:
        """The model's name with the length of its vectors: those of another name are not comparable."""

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[bytes]:
        """One vector for each text, all of one length; `query`: of questions, not of what is kept."""

    async def close(self) -> None:
        """Let go of processes and connections, for good."""


def passage_of(text: str) -> str:
    return text[: _fitting_length(text, PASSAGE_LENGTH)]


def query_tail_of(text: str) -> str:
    count = _fitting_length(text[::-1], QUERY_LENGTH)
    return text[len(text) - count :]


def is_dense(text: str) -> bool:
    """Whether most of a text stands in a script without spaces: its vectors lie elsewhere than those of the others."""
    letters = [character for character in text if character.isalpha()]
    return sum(character >= FIRST_UNSPACED_CHARACTER for character in letters) * 3 > len(letters)


def _fitting_length(text: str, limit: float) -> int:
    """How many characters from the front fit."""
    for at, character in enumerate(text):
        limit -= 1.0 if character >= FIRST_UNSPACED_CHARACTER else LATIN_WEIGHT
        if limit < 0:
            return at
    return len(text)
