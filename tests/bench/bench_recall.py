"""What recall finds, and how fast: `python -m tests.bench.bench_recall DATA` (`make bench-recall DATA=…`).

DATA holds folders with `memories.jsonl` (id, text) and `queries-dev.jsonl` (dialogue, relevant), as those of
MADial-Bench. Each memory is recorded as a `memory_fact`; asked with the user's turns and with the whole dialogue, by
words alone, by meaning alone and by both.
The speed on COUNT generated records (default 100,000) is reported as by `make bench` (`cases/recall.py`).
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sync.recall.model import SearchRequest, SearchResult
from sync.recall.semantic.local_embedder import LocalEmbedder
from tests.bench.cases import recall
from tests.integration.recall.harness import open_recall_harness

CUTS: Final = (5, 10)


def main(arguments: Sequence[str]) -> int:
    folder_name = arguments[0] if arguments else os.environ.get("RECALL_DATA", "")
    folders = sorted(path.parent for path in Path(folder_name).glob("*/queries-dev.jsonl")) if folder_name else []
    if not folders:
        print("no data: make bench-recall DATA=FOLDER, where FOLDER/*/ hold memories.jsonl and queries-dev.jsonl")
    else:
        print("| set | asked with | by | recall@5 | recall@10 | MRR | empty | ms (median) |")
        print("|---|---|---|---|---|---|---|---|")
    for folder in folders:
        asyncio.run(_quality(folder))
    with tempfile.TemporaryDirectory() as place:
        for row in recall.rows(Path(place), int(os.environ.get("COUNT", recall.COUNT))):
            print(row.line)
    return 0


async def _quality(folder: Path) -> None:
    memories, queries = _rows(folder / "memories.jsonl"), _rows(folder / "queries-dev.jsonl")
    with tempfile.TemporaryDirectory() as place:
        async with open_recall_harness(Path(place), embedder=LocalEmbedder(), patience=recall.PATIENCE) as harness:
            ids = {memory["id"]: (await harness.record_texts(memory["text"]))[0] for memory in memories}
            wanted = [[ids[name] for name in query["relevant"]] for query in queries]
            await harness.embed()
            for name, shown in (("the user's turns", _users_turns), ("the dialogue", "\n".join)):
                asked = [shown(query["dialogue"]) for query in queries]
                for side, preset in recall.SIDES.items():
                    told = [await recall.timed_search(harness, SearchRequest(text, preset=preset)) for text in asked]
                    print(f"| {folder.name} | {name} | {side} | {_measure(told, wanted)} |", flush=True)


def _measure(told: Sequence[tuple[SearchResult, float]], wanted: Sequence[Sequence[str]]) -> str:
    found_ids = ([hit.item.event_id for hit in answer.hits] for answer, _ in told)
    pairs = list(zip(found_ids, wanted, strict=True))
    recalls = [
        statistics.mean(len(set(found[:cut]) & set(right)) / len(right) for found, right in pairs) for cut in CUTS
    ]
    ranks = [next((1 / at for at, one in enumerate(found, 1) if one in right), 0.0) for found, right in pairs]
    empty = sum(not found for found, _ in pairs)
    ms = statistics.median(seconds for _, seconds in told) * 1e3
    return f"{recalls[0]:.3f} | {recalls[1]:.3f} | {statistics.mean(ranks):.3f} | {empty} | {ms:.1f}"


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _users_turns(dialogue: Sequence[str]) -> str:
    return "\n".join(line for line in dialogue if not line.startswith("Assistant:"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
