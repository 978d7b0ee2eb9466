"""Recall on many records: how fast they are indexed and found, and how large the index is.

The records are made; their vectors are made up (the models would need half an hour), those of the questions are real.
Floors: for indexing, a bare FTS5 table of the same texts, as SQLite cuts them by itself; for words, a plain scan of the
texts for one word; for meaning, one product of a question with all vectors, at full precision.
"""

import asyncio
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np

from sync.context.model import TurnRequest
from sync.context.service import ContextService
from sync.db.engine import Transaction
from sync.log import store as log_store
from sync.recall.index import vector_store
from sync.recall.model import SearchRequest, SearchResult
from sync.recall.ranking.fusion import PRESETS, Preset
from sync.recall.semantic.local_embedder import LocalEmbedder
from sync.recall.semantic.semantic_index import SemanticIndex
from sync.recall.semantic.vector_index import quantize
from sync.redaction import Redactor
from sync.texts.language import Language
from sync.understanding.service import FactService
from tests.bench.measurement import Measurement
from tests.integration.recall.harness import RecallHarness, open_recall_harness
from tests.support import event

COUNT: Final = 100_000
QUESTIONS: Final = 200
PATIENCE: Final = 120.0
AT_ONCE: Final = 5_000  # vectors that are made up in one go
SIDES: Final = {"words": Preset(1.0, 0.0), "meaning": Preset(0.0, 1.0), "both": PRESETS["default"]}
WORDS: Final = ("部署", "火锅", "数据库", "会议", "爬山", "重试", "接口", "缓存", "周末", "旅行",
    "deploy", "retry", "index", "cache", "meeting", "kitten", "bread", "garden")  # fmt: skip
SYLLABLES: Final = "天地人和山水火木金土日月风云雨雪花鸟鱼虫江河湖海春夏秋冬东西南北上下左右前后大小多少"


def rows(folder: Path, count: int = COUNT) -> Iterator[Measurement]:
    """What `make bench` and `make bench-recall` say of `count` records."""
    folder.mkdir(parents=True, exist_ok=True)
    yield from asyncio.run(_rows(folder, count))


async def timed_search(harness: RecallHarness, ask: SearchRequest) -> tuple[SearchResult, float]:
    """The result and its seconds; a semantic search must have used vectors."""
    begun = time.perf_counter()
    answer = await harness.recall.search(ask)
    took = time.perf_counter() - begun
    wanted = "used" if ask.preset and ask.preset.semantic else "off"
    if answer.semantic != wanted:
        raise RuntimeError(f"meaning was {answer.semantic}, not {wanted}")
    return answer, took


async def _rows(folder: Path, count: int) -> list[Measurement]:
    chance = random.Random(7)
    texts = [_text(chance) for _ in range(count)]
    questions = [" ".join(chance.sample(WORDS, 3)) + _text(chance)[:12] for _ in range(QUESTIONS)]
    many = f"{count:,} records"
    async with open_recall_harness(folder, embedder=LocalEmbedder(), patience=PATIENCE) as harness:
        await harness.device.database.write(lambda connection: _record(connection, texts))
        before = await harness.device.database.read(_bytes)
        rate = await _index_rate(harness, count)
        size = (await harness.device.database.read(_bytes) - before) / 1e6
        megabytes = sum(len(text.encode()) for text in texts) / 1e6
        found = [
            Measurement(
                f"indexing {many}", rate, "a second", _bare_index(folder / "bare.db", texts), ">= 5000", rate >= 5_000
            ),
            Measurement(f"index of {many}", size, "MB", megabytes, "<= 3 x the text", size <= 3 * megabytes),
        ]
        await _insert_random_vectors(harness.semantic)
        for side, floor, most in (
            ("words", _scan_ms(texts), 25),
            ("both", await _product_ms(harness.semantic, count), 60),
        ):
            await timed_search(harness, SearchRequest("热身", preset=SIDES[side]))
            took = sorted(
                [(await timed_search(harness, SearchRequest(text, preset=SIDES[side])))[1] * 1e3 for text in questions]
            )
            name = f"search by {'words' if side == 'words' else 'words and meaning'}"
            p50, p95 = took[len(took) // 2], took[int(len(took) * 0.95)]
            found.append(Measurement(f"{name}, p50", p50, "ms", floor, "reported", met=True))
            found.append(Measurement(f"{name}, p95", p95, "ms", floor, f"<= {most} ms", p95 <= most))
            context = _context_of(harness)
            took = sorted([await _timed_context(context, text, SIDES[side]) for text in questions])
            p95, name = took[int(len(took) * 0.95)], name.replace("search", "context")
            found.append(Measurement(f"{name}, p95", p95, "ms", floor, "<= 60 ms", p95 <= 60))
    return found


class _ChineseMemory:
    """The only thing that a turn asks of a memory service."""

    async def language(self) -> Language:
        return Language.ZH


def _context_of(harness: RecallHarness) -> ContextService:
    log, facts = harness.device.log, FactService(harness.device.log, Redactor(), harness.device.clock)
    memory: Any = _ChineseMemory()
    return ContextService(log, memory, lambda: harness.recall, lambda: facts, harness.device.clock)


async def _timed_context(context: ContextService, text: str, preset: Preset) -> float:
    """Milliseconds for the block before a message."""
    begun = time.perf_counter()
    await context.turn(TurnRequest(SearchRequest(text, limit=3, preset=preset)))
    return (time.perf_counter() - begun) * 1e3


async def _index_rate(harness: RecallHarness, count: int) -> float:
    """Records that are taken into the index in a second."""
    begun = time.perf_counter()
    await harness.recall.projection_runner.catch_up()
    return count / (time.perf_counter() - begun)


def _bare_index(path: Path, texts: Sequence[str]) -> float:
    """Texts a second that SQLite itself puts into an index of words."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("pragma journal_mode = wal; create virtual table bare using fts5 (text)")
        begun = time.perf_counter()
        with connection:
            connection.executemany("insert into bare values (?)", ((text,) for text in texts))
        return len(texts) / (time.perf_counter() - begun)


def _scan_ms(texts: Sequence[str]) -> float:
    begun = time.perf_counter()
    for word in WORDS:
        sum(word in text for text in texts)
    return (time.perf_counter() - begun) / len(WORDS) * 1e3


async def _product_ms(meaning: SemanticIndex, count: int) -> float:
    """One question against as many vectors, the best of some."""
    question = np.frombuffer((await meaning.embed_query("热身")).vector, np.float32)
    vectors = np.random.default_rng(7).standard_normal((count, len(question)), dtype=np.float32)
    times = []
    for _ in range(10):
        begun = time.perf_counter()
        (vectors @ question).argmax()
        times.append(time.perf_counter() - begun)
    return min(times) * 1e3


async def _insert_random_vectors(meaning: SemanticIndex) -> None:
    """A vector for each record, as if of the model that embeds the questions."""
    question = await meaning.embed_query("热身")
    dimension = len(question.vector) // 4
    chance = np.random.default_rng(7)

    def made(connection: Transaction) -> None:
        waiting = vector_store.start_model(connection, question.model, AT_ONCE)
        while waiting.items:
            numbers = chance.standard_normal((len(waiting.items), dimension), dtype=np.float32)
            made_up = [
                vector_store.VectorRow(item_id, True, quantize(row.tobytes()))
                for (item_id, _), row in zip(waiting.items, numbers, strict=True)
            ]
            vector_store.add_vectors(connection, waiting.state, made_up)
            waiting = vector_store.pending_embeddings(connection, AT_ONCE)

    await meaning.database.write(made)


def _text(chance: random.Random) -> str:
    filler = "".join(chance.choices(SYLLABLES, k=chance.randint(10, 50)))
    return f"{filler}{chance.choice(WORDS)} {chance.choice(WORDS)} {chance.randint(0, 99_999)}，{filler[::-1]}"


def _record(connection: Transaction, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), 10_000):
        page = [
            event(start + at + 1, type="memory_fact", payload={"content": text}, hlc=f"0193a5b2c3d4-{at % 65_536:04x}")
            for at, text in enumerate(texts[start : start + 10_000])
        ]
        log_store.insert_events(connection, page)


def _bytes(connection: Transaction) -> int:
    pages, size = (connection.exec_driver_sql(f"pragma page_{name}").scalar_one() for name in ("count", "size"))
    return int(pages) * int(size)
