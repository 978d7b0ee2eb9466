"""Find the lines of a document that an answer repeats, without keeping a second copy of the document.

The index keeps hashes of keys and references to strings that the document holds anyway:
`docs/decisions/006-memory-of-a-long-document.md`.
"""

from collections.abc import Iterator, Sequence

from sync.document.markdown.model import normalised_text
from sync.document.merge.text_equality import MIN_LINE_LENGTH, answer_letters, line_letters


class HashedMultimap:
    """Values by the hash of their key. A lookup may also return a value of another key with the same hash."""

    def __init__(self) -> None:
        self._values: dict[int, str | list[str]] = {}  # most keys have one value, which needs no list

    def add(self, key: str, value: str) -> None:
        values = self._values.get(hash(key))
        if values is None:
            self._values[hash(key)] = value
        elif isinstance(values, str):
            self._values[hash(key)] = [values, value]
        else:
            values.append(value)

    def remove(self, key: str, value: str) -> None:
        """Remove one value, if it is there."""
        values = self._values.get(hash(key))
        if isinstance(values, list) and value in values:
            values.remove(value)
        if values in (value, []):
            del self._values[hash(key)]

    def get(self, key: str) -> Sequence[str]:
        values = self._values.get(hash(key), [])
        return [values] if isinstance(values, str) else values


class LineIndex:
    """The lines of a document by the first letters of each. Give lines as the document holds them (`Block.raw`)."""

    def __init__(self) -> None:
        self._lines = HashedMultimap()

    def add(self, raw: str) -> None:
        letters = line_letters(normalised_text(raw))
        if len(letters) >= MIN_LINE_LENGTH:
            self._lines.add(letters[:MIN_LINE_LENGTH], raw)

    def remove(self, raw: str) -> None:
        self._lines.remove(line_letters(normalised_text(raw))[:MIN_LINE_LENGTH], raw)

    def candidates_in(self, answer: str) -> Iterator[str]:
        """The letters of each line whose first letters the answer contains: no other line can be part of it."""
        letters = answer_letters(answer)
        starts = {letters[at : at + MIN_LINE_LENGTH] for at in range(len(letters) - MIN_LINE_LENGTH + 1)}
        for start in starts:
            for raw in self._lines.get(start):
                yield line_letters(normalised_text(raw))
