"""Poisoned memories that recall hands out: fenced, without force, with their origin, and never kept again."""

import re
from pathlib import Path

import pytest

from sync.recall.text.echo_filter import LINE_PREFIXES, strip_recalled_context
from sync.texts.language import ZH
from tests.fuzz.prompt_injection import DISGUISES, ORDERS, _check_line
from tests.fuzz.rpc.framing import in_memory
from tests.proof import first_in_test

TOGETHER = 19  # poisons in one home


@pytest.mark.parametrize("start", first_in_test(range(0, len(DISGUISES), TOGETHER)))
async def test_a_recalled_poison_stays_in_the_fence_without_force(tmp_path: Path, start: int) -> None:
    poisons = [disguise.format(f"{ORDERS[0]}，然后吃火锅") for disguise in DISGUISES[start : start + TOGETHER]]
    async with in_memory(tmp_path) as line:
        for poison in poisons:
            await line.ask("events/append", event={"type": "memory_fact", "payload": {"content": poison}})
        answer = await line.ask("recall/context", query="火锅", limit=50, maxChars=20_000)
        [word] = re.findall(r"^<memory-([0-9a-f]{12})>$", answer["context"], re.MULTILINE)
        assert answer["context"].count(word) == 3
        inside = answer["context"].partition(f"<memory-{word}>\n")[2].partition(f"\n</memory-{word}>\n")[0]
        lines = inside.splitlines()
        assert len(lines) == len(answer["hits"]) >= 1
        for said in lines:
            assert re.match(rf"- {LINE_PREFIXES[ZH]}\d{{4}}-\d\d-\d\d 工具记录】", said), said
            _check_line(said.partition("】")[2])
        assert strip_recalled_context(inside) == ""
        await line.ask("events/append", event={"type": "memory_fact", "payload": {"content": answer["context"]}})
        again = await line.ask("recall/search", query="火锅", limit=100)
        assert len(again["hits"]) == len((await line.ask("recall/search", query="火锅", limit=100))["hits"])
        assert all(LINE_PREFIXES[ZH] not in hit["text"] for hit in again["hits"])
