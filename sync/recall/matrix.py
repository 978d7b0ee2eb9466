"""The vectors of all items in memory, and how far each stands out for a question: brute force with numpy.

Loaded only where there are vectors; nothing else imports numpy.

Decisions
    A vector is kept as one float32 scale and int8 numbers: a quarter of the room, and the error of a cosine is a
    hundredth of what cosines differ by.
    What counts is not a cosine but how far it lies above that of an ordinary item in the same kind of script, in
    standard deviations: e5 puts every Chinese note above every English one for a Chinese question, and its cosines
    have no threshold. Few items of a kind borrow the numbers of all (`BORROWED`).
    Beyond `EXACT` items the signs of the numbers, compared bit by bit, say which `NEAREST` of each kind are looked at.
    They lie word by word, not item by item: fourteen passes over all items take a quarter of the time that as many
    short rows take to be summed.
    `vecdot`, not `@`: a matrix product of this size is given to several threads, which costs more than it saves, and
    a tenfold of it while other programs compute. Few rows at a time stay in the cache between unpacking and product.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sync.recall.vector_store import Row

EXACT: Final = 16_384  # items up to which each is compared number by number
NEAREST: Final = 2_048
SAMPLE: Final = 2_048  # items that say what is ordinary
BORROWED: Final = 10
CHUNK: Final = 256  # rows that are unpacked at once: less than a MB
FLOOR: Final = 0.9  # standard deviations below which an item is not proposed
SAME: Final = 1e-6  # a deviation that is none
LARGEST: Final = 127

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def packed(vector: bytes) -> bytes:
    """Little-endian float32 → scale and int8."""
    numbers = np.frombuffer(vector, "<f4")
    scale = np.array(float(np.abs(numbers).max(initial=0.0)) / LARGEST or 1.0, "<f4")
    return bytes(scale.tobytes() + np.round(numbers / scale).astype(np.int8).tobytes())


def unpacked(row: bytes) -> Floats:
    numbers: Floats = np.frombuffer(row, np.int8, offset=4) * np.frombuffer(row, "<f4", count=1)
    return numbers


@dataclass(frozen=True, slots=True)
class Ordinary:
    """Mean and deviation of the cosines of each kind of script: that with spaces first."""

    mean: Floats
    deviation: Floats


class Matrix:
    """Vectors of one model, in the order of their items' ids."""

    def __init__(self, model: str, removed: int) -> None:
        self.model = model
        self.removed = removed
        self.ids: Ints = np.empty(0, np.int64)
        self._dense: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._scales: Floats = np.empty(0, np.float32)
        self._width = 0  # bytes of a row
        self._codes: NDArray[np.int8] = np.empty((0, 0), np.int8)
        self._signs: NDArray[np.uint64] | None = None
        self._centre: Floats | None = None

    @property
    def last(self) -> int:
        return int(self.ids[-1]) if len(self.ids) else 0

    def add(self, rows: Sequence[Row]) -> None:
        """Add the vectors of later items; one that is not as long as the others is damaged and says nothing."""
        if rows and not self._width:
            ((self._width, _),) = Counter(len(row.vector) for row in rows).most_common(1)
        rows = [row for row in rows if len(row.vector) == self._width]
        if not rows:
            return
        data = np.frombuffer(b"".join(row.vector for row in rows), np.int8).reshape(len(rows), -1)
        codes = data[:, 4:]
        if len(self.ids):
            codes = np.concatenate([self._codes, codes])
        self._codes = np.ascontiguousarray(codes)
        self._scales = np.concatenate([self._scales, np.ascontiguousarray(data[:, :4]).view("<f4")[:, 0]])
        self.ids = np.concatenate([self.ids, np.array([row.item_id for row in rows], np.int64)])
        self._dense = np.concatenate([self._dense, np.array([row.dense for row in rows], np.bool_)])
        self._signs = None if self._signs is None else self._signed(self._signs.shape[1])

    def keep(self, ids: Sequence[int], removed: int) -> None:
        """Let go of the vectors of all other items."""
        stays = np.isin(self.ids, np.array(ids, np.int64))
        self.ids, self._dense, self._scales = self.ids[stays], self._dense[stays], self._scales[stays]
        self._codes = self._codes[stays]
        self._signs = None if self._signs is None else self._signs[:, stays]
        self.removed = removed

    def asked(self, query: bytes) -> "Asked":
        question = np.frombuffer(query, "<f4")
        return Asked(self, question, self._ordinary(question))

    def similar(self, rows: Ints, question: Floats) -> Floats:
        """The dot products of some rows with a question."""
        found = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), CHUNK):
            at = rows[start : start + CHUNK]
            found[start : start + len(at)] = np.vecdot(self._codes[at].astype(np.float32), question)
        return found * self._scales[rows]

    def candidates(self, question: Floats, rows: Ints | None) -> Ints:
        """The rows that are worth a comparison number by number; `rows`: the only ones that may be."""
        everything = np.arange(len(self.ids)) if rows is None else rows
        if len(everything) <= EXACT:
            return everything
        if self._signs is None:
            self._signs = self._signed(0)
        assert self._centre is not None
        asked = _words(np.packbits((question - self._centre) > 0)[None])
        distance = np.zeros(len(everything), np.int32)
        for ours, theirs in zip(self._signs, asked, strict=True):
            distance += np.bitwise_count((ours if rows is None else ours[rows]) ^ theirs)
        dense = self._dense if rows is None else self._dense[rows]
        found = []
        for kind in (False, True):
            of_kind = np.flatnonzero(dense == kind)
            if len(of_kind) > NEAREST:
                of_kind = of_kind[np.argpartition(distance[of_kind], NEAREST)[:NEAREST]]
            found.append(everything[of_kind])
        return np.concatenate(found)

    def is_dense(self, rows: Ints) -> Ints:
        return self._dense[rows].astype(np.int64)

    def _signed(self, begin: int) -> NDArray[np.uint64]:
        """The signs of every row's numbers around the middle of all, a column for each row; before `begin` as known."""
        if self._centre is None:
            sample = np.arange(0, len(self.ids), max(len(self.ids) // SAMPLE, 1))
            self._centre = (self._codes[sample] * self._scales[sample, None]).mean(axis=0, dtype=np.float32)
        found = [] if begin == 0 or self._signs is None else [self._signs]
        for start in range(begin, len(self.ids), CHUNK):
            rows = slice(start, start + CHUNK)
            above = self._codes[rows] * self._scales[rows, None] > self._centre
            found.append(_words(np.packbits(above, axis=1)))
        return np.concatenate(found, axis=1)

    def _ordinary(self, question: Floats) -> Ordinary:
        sample = np.arange(0, len(self.ids), max(len(self.ids) // SAMPLE, 1))
        found, kinds = self.similar(sample, question).astype(np.float64), self.is_dense(sample)
        mean, spread = float(found.mean()), float(found.var())
        means, spreads = [], []
        for kind in (0, 1):
            own = found[kinds == kind]
            share = len(own) + BORROWED
            means.append((own.sum() + BORROWED * mean) / share)
            spreads.append((((own - own.mean()) ** 2).sum() + BORROWED * spread) / share if len(own) else spread)
        return Ordinary(np.array(means, np.float32), np.sqrt(np.array(spreads, np.float32)))


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a matrix. What stands out is told in standard deviations above an ordinary item."""

    matrix: Matrix
    question: Floats
    ordinary: Ordinary

    def best(self, count: int, allowed: Collection[int] | None) -> dict[int, float]:
        """The items that stand out most, those of `allowed` alone where it is given."""
        ids = self.matrix.ids
        rows = None if allowed is None else np.flatnonzero(np.isin(ids, np.fromiter(allowed, np.int64)))
        near = self.matrix.candidates(self.question, rows)
        found = self._standing(near)
        if len(found) > count:
            first = np.argpartition(-found, count)[:count]
            near, found = near[first], found[first]
        return {int(ids[row]): float(value) for row, value in zip(near, found, strict=True) if value >= FLOOR}

    def of(self, item_ids: Sequence[int]) -> dict[int, float]:
        """How far certain items stand out; those without a vector are left out."""
        wanted, ids = np.array(sorted(item_ids), np.int64), self.matrix.ids
        at = np.searchsorted(ids, wanted)
        rows = at[(at < len(ids)) & (ids[np.minimum(at, len(ids) - 1)] == wanted)]
        return dict(zip(self.matrix.ids[rows].tolist(), self._standing(rows).tolist(), strict=True))

    def _standing(self, rows: Ints) -> Floats:
        kinds = self.matrix.is_dense(rows)
        above = self.matrix.similar(rows, self.question) - self.ordinary.mean[kinds]
        deviation = self.ordinary.deviation[kinds]
        alike: Floats = np.ones(len(rows), np.float32)  # where all are, each is as near as the next
        found: Floats = np.divide(above, deviation, out=alike, where=deviation > SAME)
        return found


def _words(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Rows of bytes as columns of 64-bit words."""
    missing = -bits.shape[1] % 8
    return np.ascontiguousarray(np.ascontiguousarray(np.pad(bits, ((0, 0), (0, missing)))).view(np.uint64).T)
