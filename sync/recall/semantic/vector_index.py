"""The vectors of all items in memory, and how far each stands out for a question: brute force with numpy.

Loaded only where there are vectors; nothing else imports numpy.

Decisions
    A vector is kept as one float32 scale and int8 numbers: a quarter of the room, and the error of a cosine is a
    hundredth of what cosines differ by.
    What counts is not a cosine but how far it lies above that of an ordinary item in the same kind of script, in
    standard deviations: e5 puts every Chinese note above every English one for a Chinese question, and its cosines
    have no threshold. Few items of a kind borrow the numbers of all (`PRIOR_ITEMS`).
    Beyond `MAX_EXACT_ITEMS` items the signs of the numbers, compared bit by bit, say which `MAX_CANDIDATES` of each
    kind are looked at.
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

from sync.recall.index.vector_store import VectorRow

MAX_EXACT_ITEMS: Final = 16_384  # items up to which each is compared number by number
MAX_CANDIDATES: Final = 2_048
BASELINE_SAMPLE: Final = 2_048  # items that say what is ordinary
PRIOR_ITEMS: Final = 10
CHUNK_ROWS: Final = 256  # rows that are unpacked at once: less than a MB
MIN_DEVIATIONS: Final = 0.9  # standard deviations below which an item is not proposed
MIN_DEVIATION: Final = 1e-6  # a deviation that is none
INT8_MAX: Final = 127

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def quantize(vector: bytes) -> bytes:
    """Little-endian float32 → scale and int8."""
    numbers = np.frombuffer(vector, "<f4")
    scale = np.array(float(np.abs(numbers).max(initial=0.0)) / INT8_MAX or 1.0, "<f4")
    return bytes(scale.tobytes() + np.round(numbers / scale).astype(np.int8).tobytes())


def dequantize(row: bytes) -> Floats:
    numbers: Floats = np.frombuffer(row, np.int8, offset=4) * np.frombuffer(row, "<f4", count=1)
    return numbers


@dataclass(frozen=True, slots=True)
class CosineBaseline:
    """Mean and deviation of the cosines of each kind of script: that with spaces first."""

    mean: Floats
    deviation: Floats


class VectorIndex:
    """Vectors of one model, in the order of their items' ids."""

    def __init__(self, model: str, removed_count: int) -> None:
        self.model = model
        self.removed_count = removed_count
        self.ids: Ints = np.empty(0, np.int64)
        self._dense: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._scales: Floats = np.empty(0, np.float32)
        self._width = 0  # bytes of a row
        self._codes: NDArray[np.int8] = np.empty((0, 0), np.int8)
        self._signs: NDArray[np.uint64] | None = None
        self._centre: Floats | None = None

    @property
    def last_id(self) -> int:
        return int(self.ids[-1]) if len(self.ids) else 0

    def add(self, rows: Sequence[VectorRow]) -> None:
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
        self._dense = np.concatenate([self._dense, np.array([row.is_dense for row in rows], np.bool_)])
        self._signs = None if self._signs is None else self._sign_bits(self._signs.shape[1])

    def retain(self, ids: Sequence[int], removed_count: int) -> None:
        """Let go of the vectors of all other items."""
        stays = np.isin(self.ids, np.array(ids, np.int64))
        self.ids, self._dense, self._scales = self.ids[stays], self._dense[stays], self._scales[stays]
        self._codes = self._codes[stays]
        self._signs = None if self._signs is None else self._signs[:, stays]
        self.removed_count = removed_count

    def query(self, query_bytes: bytes) -> "VectorQuery":
        question = np.frombuffer(query_bytes, "<f4")
        return VectorQuery(self, question, self._baseline(question))

    def dot_products(self, rows: Ints, query_vector: Floats) -> Floats:
        """The dot products of some rows with a question."""
        found = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), CHUNK_ROWS):
            at = rows[start : start + CHUNK_ROWS]
            found[start : start + len(at)] = np.vecdot(self._codes[at].astype(np.float32), query_vector)
        return found * self._scales[rows]

    def candidates(self, query_vector: Floats, rows: Ints | None) -> Ints:
        """The rows that are worth a comparison number by number; `rows`: the only ones that may be."""
        everything = np.arange(len(self.ids)) if rows is None else rows
        if len(everything) <= MAX_EXACT_ITEMS:
            return everything
        if self._signs is None:
            self._signs = self._sign_bits(0)
        assert self._centre is not None
        asked = _as_uint64_columns(np.packbits((query_vector - self._centre) > 0)[None])
        distance = np.zeros(len(everything), np.int32)
        for ours, theirs in zip(self._signs, asked, strict=True):
            distance += np.bitwise_count((ours if rows is None else ours[rows]) ^ theirs)
        dense = self._dense if rows is None else self._dense[rows]
        found = []
        for kind in (False, True):
            of_kind = np.flatnonzero(dense == kind)
            if len(of_kind) > MAX_CANDIDATES:
                of_kind = of_kind[np.argpartition(distance[of_kind], MAX_CANDIDATES)[:MAX_CANDIDATES]]
            found.append(everything[of_kind])
        return np.concatenate(found)

    def is_dense(self, rows: Ints) -> Ints:
        return self._dense[rows].astype(np.int64)

    def _sign_bits(self, begin: int) -> NDArray[np.uint64]:
        """The signs of every row's numbers around the middle of all, a column for each row; before `begin` as known."""
        if self._centre is None:
            sample = np.arange(0, len(self.ids), max(len(self.ids) // BASELINE_SAMPLE, 1))
            self._centre = (self._codes[sample] * self._scales[sample, None]).mean(axis=0, dtype=np.float32)
        found = [] if begin == 0 or self._signs is None else [self._signs]
        for start in range(begin, len(self.ids), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            above = self._codes[rows] * self._scales[rows, None] > self._centre
            found.append(_as_uint64_columns(np.packbits(above, axis=1)))
        return np.concatenate(found, axis=1)

    def _baseline(self, query_vector: Floats) -> CosineBaseline:
        sample = np.arange(0, len(self.ids), max(len(self.ids) // BASELINE_SAMPLE, 1))
        found, kinds = self.dot_products(sample, query_vector).astype(np.float64), self.is_dense(sample)
        mean, spread = float(found.mean()), float(found.var())
        means, spreads = [], []
        for kind in (0, 1):
            own = found[kinds == kind]
            share = len(own) + PRIOR_ITEMS
            means.append((own.sum() + PRIOR_ITEMS * mean) / share)
            spreads.append((((own - own.mean()) ** 2).sum() + PRIOR_ITEMS * spread) / share if len(own) else spread)
        return CosineBaseline(np.array(means, np.float32), np.sqrt(np.array(spreads, np.float32)))


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A question to a matrix. What stands out is told in standard deviations above an ordinary item."""

    index: VectorIndex
    vector: Floats
    baseline: CosineBaseline

    def best(self, count: int, allowed_ids: Collection[int] | None) -> dict[int, float]:
        """The items that stand out most, those of `allowed` alone where it is given."""
        ids = self.index.ids
        rows = None if allowed_ids is None else np.flatnonzero(np.isin(ids, np.fromiter(allowed_ids, np.int64)))
        near = self.index.candidates(self.vector, rows)
        found = self._z_scores(near)
        if len(found) > count:
            first = np.argpartition(-found, count)[:count]
            near, found = near[first], found[first]
        return {int(ids[row]): float(value) for row, value in zip(near, found, strict=True) if value >= MIN_DEVIATIONS}

    def scores_of(self, item_ids: Sequence[int]) -> dict[int, float]:
        """How far certain items stand out; those without a vector are left out."""
        wanted, ids = np.array(sorted(item_ids), np.int64), self.index.ids
        at = np.searchsorted(ids, wanted)
        rows = at[(at < len(ids)) & (ids[np.minimum(at, len(ids) - 1)] == wanted)]
        return dict(zip(self.index.ids[rows].tolist(), self._z_scores(rows).tolist(), strict=True))

    def _z_scores(self, rows: Ints) -> Floats:
        kinds = self.index.is_dense(rows)
        above = self.index.dot_products(rows, self.vector) - self.baseline.mean[kinds]
        deviation = self.baseline.deviation[kinds]
        alike: Floats = np.ones(len(rows), np.float32)  # where all are, each is as near as the next
        found: Floats = np.divide(above, deviation, out=alike, where=deviation > MIN_DEVIATION)
        return found


def _as_uint64_columns(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Rows of bytes as columns of 64-bit words."""
    missing = -bits.shape[1] % 8
    return np.ascontiguousarray(np.ascontiguousarray(np.pad(bits, ((0, 0), (0, missing)))).view(np.uint64).T)
