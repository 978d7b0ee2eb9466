"""What recall finds, and how fast: `python -m tests.bench.bench_recall DATA` (`make bench-recall DATA=…`).

DATA holds folders with `memories.jsonl` (id, text) and `queries-dev.jsonl` (dialogue, relevant), as those of
MADial-Bench. Each memory is recorded as a `memory_fact`; asked with the user's turns and with the whole dialogue, by
words alone, by meaning alone and by both.
Speed is that of COUNT made records (100,000 unless said otherwise), beside a plain scan of the same texts for a word.
Their vectors are made up (the models would need half an hour); those of the questions are real ones.
"""

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection

from sync.log import store as log_store
from sync.recall import vector_store
from sync.recall.fuse import PRESETS, Preset
from sync.recall.local import LocalEmbedder
from sync.recall.matrix import packed
from sync.recall.meaning import Meaning
from sync.recall.model import Ask
from tests.integration.recall_desk import Desk, open_desk
from tests.support import event

CUTS: Final = (5, 10)
PATIENCE: Final = 120.0
AT_ONCE: Final = 5_000  # vectors that are made up in one go
SIDES: Final = {"words": Preset(1.0, 0.0), "meaning": Preset(0.0, 1.0), "both": PRESETS["default"]}
WORDS: Final = ("部署", "火锅", "数据库", "会议", "爬山", "重试", "接口", "缓存", "周末", "旅行",
    "deploy", "retry", "index", "cache", "meeting", "kitten", "bread", "garden")  # fmt: skip
SYLLABLES: Final = "天地人和山水火木金土日月风云雨雪花鸟鱼虫江河湖海春夏秋冬东西南北上下左右前后大小多少"


def main(arguments: Sequence[str]) -> int:
    given = arguments[0] if arguments else os.environ.get("RECALL_DATA", "")
    folders = sorted(path.parent for path in Path(given).glob("*/queries-dev.jsonl")) if given else []
    if not folders:
        print("no data: make bench-recall DATA=FOLDER, where FOLDER/*/ hold memories.jsonl and queries-dev.jsonl")
    else:
        print("| set | asked with | by | recall@5 | recall@10 | MRR | empty | ms (median) |")
        print("|---|---|---|---|---|---|---|---|")
    for folder in folders:
        asyncio.run(_quality(folder))
    asyncio.run(_speed(int(os.environ.get("COUNT", "100000"))))
    return 0


async def _quality(folder: Path) -> None:
    memories, queries = _rows(folder / "memories.jsonl"), _rows(folder / "queries-dev.jsonl")
    wanted = [[f"m{name}" for name in query["relevant"]] for query in queries]
    with tempfile.TemporaryDirectory() as place:
        async with open_desk(Path(place), embedder=LocalEmbedder(), patience=PATIENCE) as desk:
            for memory in memories:
                await desk.keep(memory["text"], event_id=f"m{memory['id']}")
            await desk.embed()
            for name, shown in (("the user's turns", _users_turns), ("the dialogue", "\n".join)):
                asked = [shown(query["dialogue"]) for query in queries]
                for side, preset in SIDES.items():
                    told = [await _asked(desk, Ask(text, preset=preset)) for text in asked]
                    print(f"| {folder.name} | {name} | {side} | {_measured(told, wanted)} |", flush=True)


async def _asked(desk: Desk, ask: Ask) -> tuple[list[str], float]:
    begun = time.perf_counter()
    answer = await desk.recall.search(ask)
    took = time.perf_counter() - begun
    assert answer.semantic == ("used" if ask.preset and ask.preset.semantic else "off"), answer.semantic
    return [hit.kept.event_id for hit in answer.hits], took


def _measured(told: list[tuple[list[str], float]], wanted: list[list[str]]) -> str:
    pairs = [(found, right) for (found, _), right in zip(told, wanted, strict=True)]
    recalls = [
        statistics.mean(len(set(found[:cut]) & set(right)) / len(right) for found, right in pairs) for cut in CUTS
    ]
    ranks = [next((1 / at for at, one in enumerate(found, 1) if one in right), 0.0) for found, right in pairs]
    empty = sum(not found for found, _ in pairs)
    ms = statistics.median(seconds for _, seconds in told) * 1e3
    return f"{recalls[0]:.3f} | {recalls[1]:.3f} | {statistics.mean(ranks):.3f} | {empty} | {ms:.1f}"


async def _speed(count: int) -> None:
    chance = random.Random(7)
    texts = [_text(chance) for _ in range(count)]
    begun = time.perf_counter()
    for word in WORDS:
        sum(word in text for text in texts)
    floor = (time.perf_counter() - begun) / len(WORDS) * 1e3
    with tempfile.TemporaryDirectory() as place:
        async with open_desk(Path(place), embedder=LocalEmbedder(), patience=PATIENCE) as desk:
            await desk.device.database.write(lambda connection: _record(connection, texts))
            before = await desk.device.database.read(_bytes)
            begun = time.perf_counter()
            await desk.recall.follower.catch_up()
            indexed = count / (time.perf_counter() - begun)
            grown = await desk.device.database.read(_bytes) - before
            size = grown / sum(len(text.encode()) for text in texts)
            print(f"{count} records: {indexed:,.0f} records/s indexed; index {size:.2f} × the text", flush=True)
            await _make_up_vectors(desk.meaning)
            asked = [" ".join(chance.sample(WORDS, 3)) + _text(chance)[:12] for _ in range(200)]
            for side, name in (("words", "words"), ("both", "words and meaning")):
                await _asked(desk, Ask("热身", preset=SIDES[side]))
                took = sorted([(await _asked(desk, Ask(text, preset=SIDES[side])))[1] * 1e3 for text in asked])
                p50, p95 = took[len(took) // 2], took[int(len(took) * 0.95)]
                print(f"search by {name}: p50 {p50:.1f} ms, p95 {p95:.1f} ms, {p95 / floor:.1f} × a plain scan")
    print(f"a plain scan for one word: {floor:.1f} ms")


async def _make_up_vectors(meaning: Meaning) -> None:
    """A vector for each record, as if of the model that embeds the questions."""
    question = await meaning.question("热身")
    dimension = len(question.vector) // 4
    chance = np.random.default_rng(7)

    def made(connection: Connection) -> None:
        waiting = vector_store.begin(connection, question.model, AT_ONCE)
        while waiting.items:
            numbers = chance.standard_normal((len(waiting.items), dimension), dtype=np.float32)
            rows = [
                vector_store.Row(item_id, True, packed(row.tobytes()))
                for (item_id, _), row in zip(waiting.items, numbers, strict=True)
            ]
            vector_store.add(connection, waiting.made, rows)
            waiting = vector_store.waiting(connection, AT_ONCE)

    await meaning.database.write(made)


def _text(chance: random.Random) -> str:
    filler = "".join(chance.choices(SYLLABLES, k=chance.randint(10, 50)))
    return f"{filler}{chance.choice(WORDS)} {chance.choice(WORDS)} {chance.randint(0, 99_999)}，{filler[::-1]}"


def _record(connection: Connection, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), 10_000):
        page = [
            event(start + at + 1, type="memory_fact", payload={"content": text}, hlc=f"0193a5b2c3d4-{at % 65_536:04x}")
            for at, text in enumerate(texts[start : start + 10_000])
        ]
        log_store.add_all(connection, page)


def _bytes(connection: Connection) -> int:
    pages, size = (connection.exec_driver_sql(f"pragma page_{name}").scalar_one() for name in ("count", "size"))
    return int(pages) * int(size)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _users_turns(dialogue: Sequence[str]) -> str:
    return "\n".join(line for line in dialogue if not line.startswith("Assistant:"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
