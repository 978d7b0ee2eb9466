"""All vectors in memory, and brute-force search with numpy. Nothing else imports numpy.

A vector is one float32 scale and int8 codes. Scores are standard deviations above the mean cosine of items in the same
kind of script, because e5 ranks every Chinese text above every English one for a Chinese query. Above
`MAX_EXACT_ITEMS` items, sign bits preselect `MAX_CANDIDATES` of each kind.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from sync.recall.index.vector_store import VectorRow
from sync.recall.semantic.embedder import ModelPart

MAX_EXACT_ITEMS: Final = 16_384  # up to so many, each vector is compared
MAX_CANDIDATES: Final = 2_048
BASELINE_SAMPLE: Final = 2_048  # items from which mean and deviation are estimated
PRIOR_ITEMS: Final = 10  # the weight of the overall mean and deviation in those of each kind
CHUNK_ROWS: Final = 256  # rows unpacked at once: less than a MB, so that they stay in the cache
MIN_DEVIATIONS: Final = 0.9  # a lower score is not proposed
MIN_DEVIATION: Final = 1e-6  # a smaller deviation counts as zero
INT8_MAX: Final = 127
SPARE_ROWS: Final = 4_096  # of each array, so that few additions copy all vectors (100 MB of 100,000)

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def quantize(vector: bytes) -> bytes:
    """Pack little-endian float32 as a scale and int8 codes."""
    numbers = np.frombuffer(vector, "<f4")
    scale = np.array(float(np.abs(numbers).max(initial=0.0)) / INT8_MAX or 1.0, "<f4")
    return bytes(scale.tobytes() + np.round(numbers / scale).astype(np.int8).tobytes())


class CosineBaseline(msgspec.Struct, frozen=True):
    """Mean and deviation of the cosines, of scripts with spaces first, then of those without."""

    mean: Floats
    deviation: Floats


class VectorIndex:
    """Vectors of one model, in the order of their items' ids. All arrays but `ids` have room for more rows."""

    def __init__(self, model: str, removed_count: int) -> None:
        self.model = model
        self.removed_count = removed_count
        self.ids: Ints = np.empty(0, np.int64)
        self._ids = self.ids  # with room for more
        self._dense: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._scales: Floats = np.empty(0, np.float32)
        self._width = 0  # bytes of a row
        self._codes: NDArray[np.int8] = np.empty((0, 0), np.int8)
        self._signs: list[NDArray[np.uint64]] | None = None  # by word of 64 bits
        self._centre: Floats | None = None

    @property
    def last_id(self) -> int:
        return int(self.ids[-1]) if len(self.ids) else 0

    def add(self, rows: Sequence[VectorRow]) -> None:
        """Add the vectors of later items, ignoring damaged ones of another length."""
        if rows and not self._width:
            ((self._width, _),) = Counter(len(row.vector) for row in rows).most_common(1)
        rows = [row for row in rows if len(row.vector) == self._width]
        if not rows:
            return
        data = np.frombuffer(b"".join(row.vector for row in rows), np.int8).reshape(len(rows), -1)
        count = len(self.ids)
        if not count:
            self._codes = np.empty((0, data.shape[1] - 4), np.int8)
        self._codes = _extended(self._codes, count, data[:, 4:])
        self._scales = _extended(self._scales, count, np.ascontiguousarray(data[:, :4]).view("<f4")[:, 0])
        self._dense = _extended(self._dense, count, np.array([row.is_dense for row in rows], np.bool_))
        self._ids = _extended(self._ids, count, np.array([row.item_id for row in rows], np.int64))
        if self._signs is not None:
            more = self._sign_bits(count, count + len(rows))
            self._signs = [_extended(of_word, count, bits) for of_word, bits in zip(self._signs, more, strict=True)]
        self.ids = self._ids[: count + len(rows)]

    def retain(self, ids: Sequence[int], removed_count: int) -> None:
        """Remove the vectors of all other items."""
        kept = np.flatnonzero(np.isin(self.ids, np.array(ids, np.int64)))
        self._ids = self.ids = self.ids[kept]
        self._dense, self._scales, self._codes = self._dense[kept], self._scales[kept], self._codes[kept]
        self._signs = None if self._signs is None else [of_word[kept] for of_word in self._signs]
        self.removed_count = removed_count

    def query(self, query_bytes: bytes) -> "VectorQuery":
        query_vector = np.frombuffer(query_bytes, "<f4")
        return VectorQuery(self, query_vector, self._baseline(query_vector))

    def dot_products(self, rows: Ints, query_vector: Floats) -> Floats:
        """The dot products of rows with a query, by `vecdot`: `@` would use several threads, which is slower here."""
        products = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), CHUNK_ROWS):
            at = rows[start : start + CHUNK_ROWS]
            products[start : start + len(at)] = np.vecdot(self._codes[at].astype(np.float32), query_vector)
        return products * self._scales[rows]

    def cosines(self, rows: Ints, query_vector: Floats, part: ModelPart) -> Floats:
        """The cosines of rows with a query in one part of the vectors."""
        codes, query_part = (
            self._codes[rows, part.start : part.stop].astype(np.float32),
            query_vector[part.start : part.stop],
        )
        lengths = np.linalg.norm(codes, axis=1) * np.linalg.norm(query_part)
        return np.asarray(np.vecdot(codes, query_part) / np.maximum(lengths, MIN_DEVIATION), np.float32)

    def candidates(self, query_vector: Floats, rows: Ints | None) -> Ints:
        """The rows to compare exactly, out of `rows` or of all."""
        allowed = np.arange(len(self.ids)) if rows is None else rows
        if len(allowed) <= MAX_EXACT_ITEMS:
            return allowed
        if self._signs is None:
            self._signs = list(self._sign_bits(0, len(self.ids)))
        assert self._centre is not None
        query_signs = _as_uint64_columns(np.packbits((query_vector - self._centre) > 0)[None])
        distance = np.zeros(len(allowed), np.int32)
        for ours, theirs in zip(self._signs, query_signs, strict=True):
            distance += np.bitwise_count((ours[: len(allowed)] if rows is None else ours[rows]) ^ theirs)
        dense = self._dense[allowed]
        candidates = []
        for kind in (False, True):
            of_kind = np.flatnonzero(dense == kind)
            if len(of_kind) > MAX_CANDIDATES:
                of_kind = of_kind[np.argpartition(distance[of_kind], MAX_CANDIDATES)[:MAX_CANDIDATES]]
            candidates.append(allowed[of_kind])
        return np.concatenate(candidates)

    def is_dense(self, rows: Ints) -> Ints:
        return self._dense[rows].astype(np.int64)

    def _sign_bits(self, begin: int, end: int) -> NDArray[np.uint64]:
        """Sign bits of rows around the mean vector, a column for each row.

        Stored column by column, all items are compared in a few passes, four times as fast as row by row.
        """
        if self._centre is None:
            sample = np.arange(0, len(self.ids), max(len(self.ids) // BASELINE_SAMPLE, 1))
            self._centre = (self._codes[sample] * self._scales[sample, None]).mean(axis=0, dtype=np.float32)
        columns = []
        for start in range(begin, end, CHUNK_ROWS):
            rows = slice(start, min(start + CHUNK_ROWS, end))
            above = self._codes[rows] * self._scales[rows, None] > self._centre
            columns.append(_as_uint64_columns(np.packbits(above, axis=1)))
        return np.concatenate(columns, axis=1)

    def _baseline(self, query_vector: Floats) -> CosineBaseline:
        sample = np.arange(0, len(self.ids), max(len(self.ids) // BASELINE_SAMPLE, 1))
        products, kinds = self.dot_products(sample, query_vector).astype(np.float64), self.is_dense(sample)
        mean, spread = float(products.mean()), float(products.var())
        means, spreads = [], []
        for kind in (0, 1):
            own = products[kinds == kind]
            share = len(own) + PRIOR_ITEMS
            means.append((own.sum() + PRIOR_ITEMS * mean) / share)
            spreads.append((((own - own.mean()) ** 2).sum() + PRIOR_ITEMS * spread) / share if len(own) else spread)
        return CosineBaseline(np.array(means, np.float32), np.sqrt(np.array(spreads, np.float32)))


class VectorQuery(msgspec.Struct, frozen=True):
    """A query to a vector index. Scores are standard deviations above the mean."""

    index: VectorIndex
    vector: Floats
    baseline: CosineBaseline

    def best(self, count: int, allowed_ids: Collection[int] | None) -> dict[int, float]:
        """The best items, of `allowed_ids` or of all."""
        ids = self.index.ids
        rows = None if allowed_ids is None else np.flatnonzero(np.isin(ids, np.fromiter(allowed_ids, np.int64)))
        near = self.index.candidates(self.vector, rows)
        scores = self._z_scores(near)
        if len(scores) > count:
            first = np.argpartition(-scores, count)[:count]
            near, scores = near[first], scores[first]
        return {int(ids[row]): float(score) for row, score in zip(near, scores, strict=True) if score >= MIN_DEVIATIONS}

    def scores_of(self, item_ids: Sequence[int]) -> dict[int, float]:
        """The scores of these items, without those that have no vector."""
        requested, ids = np.array(sorted(item_ids), np.int64), self.index.ids
        at = np.searchsorted(ids, requested)
        rows = at[(at < len(ids)) & (ids[np.minimum(at, len(ids) - 1)] == requested)]
        return dict(zip(self.index.ids[rows].tolist(), self._z_scores(rows).tolist(), strict=True))

    def cosines_of(self, item_ids: Sequence[int], parts: Sequence[ModelPart]) -> dict[int, dict[str, float]]:
        """The cosine of each model whose vector is a part of ours, by item; items without a vector are left out."""
        requested, ids = np.array(sorted(item_ids), np.int64), self.index.ids
        at = np.searchsorted(ids, requested)
        rows = at[(at < len(ids)) & (ids[np.minimum(at, len(ids) - 1)] == requested)]
        columns = [self.index.cosines(rows, self.vector, part).tolist() for part in parts]
        names = [part.name for part in parts]
        return {
            item_id: dict(zip(names, values, strict=True))
            for item_id, *values in zip(ids[rows].tolist(), *columns, strict=True)
        }

    def _z_scores(self, rows: Ints) -> Floats:
        kinds = self.index.is_dense(rows)
        above = self.index.dot_products(rows, self.vector) - self.baseline.mean[kinds]
        deviation = self.baseline.deviation[kinds]
        equal: Floats = np.ones(len(rows), np.float32)  # if all vectors are alike
        scores: Floats = np.divide(above, deviation, out=equal, where=deviation > MIN_DEVIATION)
        return scores


def _extended(array: NDArray[Any], count: int, added: NDArray[Any]) -> NDArray[Any]:
    """An array with more rows behind its first `count`; in place if it has the room."""
    if count + len(added) > len(array):
        roomy = np.empty((count + len(added) + SPARE_ROWS, *array.shape[1:]), array.dtype)
        roomy[:count] = array[:count]
        array = roomy
    array[count : count + len(added)] = added
    return array


def _as_uint64_columns(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Rows of bytes as columns of 64-bit words."""
    missing = -bits.shape[1] % 8
    return np.ascontiguousarray(np.ascontiguousarray(np.pad(bits, ((0, 0), (0, missing)))).view(np.uint64).T)
