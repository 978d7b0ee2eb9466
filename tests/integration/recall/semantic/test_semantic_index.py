"""Recall by meaning: what shares no word is found, nothing waits for a vector, and what goes takes its own along."""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sync.db.engine import WAL_PUBLISH_GRACE_NS, Transaction
from sync.recall.index import vector_store
from sync.recall.ranking.fusion import Preset
from sync.recall.semantic.api_embedder import ApiEmbedder
from sync.recall.semantic.embedder import EmbeddingFailed
from sync.recall.semantic.local_embedder import LocalEmbedder
from tests.integration.recall.harness import LetterCountEmbedder, open_recall_harness
from tests.support import BROKEN_AFTER, REDACTOR

STEPS = 40  # of the loop, after which a question waits for its vector
FACTS = (
    "支付接口失败后重试三次",
    "周末和小李去吃了重庆火锅",
    "国庆节去黄山爬山",
    "猫咪喜欢睡在窗台上",
    "Deploys happen on Fridays",
    "The kettle is broken",
)
PARAPHRASES = [("我养的宠物", 3), ("想吃辣的", 1), ("登高望远", 2), ("when do we release", 4), ("boiling water", 5)]


def vectors(connection: Transaction) -> set[int]:
    return set(vector_store.vector_item_ids(connection))


async def test_the_real_models_find_what_shares_no_word(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path, embedder=LocalEmbedder(), patience=120.0) as harness:
        await harness.record_texts(*FACTS)
        await harness.embed()
        for query, right in PARAPHRASES:
            answer = await harness.search(query)
            assert answer.semantic == "used"
            assert answer.hits[0].item.text == FACTS[right], query
            assert answer.hits[0].parts.semantic == 1.0
        assert (await harness.texts_found("重试"))[0] == FACTS[0]


async def test_without_models_words_alone_answer_and_the_answer_says_so(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path) as harness:
        await harness.record_texts(*FACTS)
        await harness.embed()
        answer = await harness.search("登高望远")
        assert (answer.hits, answer.semantic) == ((), "off")


async def test_an_answer_says_how_much_of_the_memory_has_vectors(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path, embedder=LetterCountEmbedder()) as harness:
        await harness.record_texts(*FACTS)
        assert (await harness.search("爬山")).semantic == "pending"
        await harness.embed()
        assert (await harness.search("爬山")).semantic == "used"
        await harness.record_texts("又去了泰山")
        assert (await harness.search("爬山")).semantic == "partial"
        words_alone = await harness.search("爬山", preset=Preset(1.0, 0.0))
        assert (words_alone.semantic, words_alone.hits[0].parts.semantic) == ("off", None)


async def test_a_vector_that_does_not_come_in_time_is_not_waited_for(tmp_path: Path) -> None:
    embedder = LetterCountEmbedder()
    async with open_recall_harness(tmp_path, embedder=embedder, patience=0.2) as harness:
        await harness.record_texts(*FACTS)
        await harness.embed()
        embedder.gate = asyncio.Event()
        late = await harness.search("爬山")
        assert (late.semantic, late.hits[0].item.text) == ("pending", FACTS[2])
        embedder.gate.set()
        embedder.gate = None
        assert (await harness.search("爬山")).semantic == "used"


async def test_words_answer_at_once_while_models_are_being_loaded(tmp_path: Path) -> None:
    embedder = LetterCountEmbedder()
    async with open_recall_harness(tmp_path, embedder=embedder) as harness:
        await harness.record_texts(*FACTS)
        await harness.embed()
        embedder.gate, embedder.is_loading = asyncio.Event(), True
        early = await harness.search("爬山")  # would wait for ever
        assert (early.semantic, early.hits[0].item.text) == ("pending", FACTS[2])
        embedder.gate.set()
        embedder.is_loading = False
        assert (await harness.search("爬山")).semantic == "used"


async def test_an_answer_that_took_its_time_is_not_kept_for_what_was_said_meanwhile(tmp_path: Path) -> None:
    embedder = LetterCountEmbedder()
    async with open_recall_harness(tmp_path, embedder=embedder, inline=True) as harness:
        await harness.record_texts(*FACTS)
        await harness.embed()
        embedder.gate = asyncio.Event()
        slow = asyncio.create_task(harness.search("爬山"))
        for _ in range(STEPS):
            await asyncio.sleep(0)
        await harness.record_texts("明天又去爬山")
        assert await harness.texts_found("窗台", preset=Preset(1.0, 0.0)) == [FACTS[3]]
        embedder.gate.set()
        assert (await slow).semantic == "partial"
        assert "明天又去爬山" in await harness.texts_found("爬山")


async def test_an_answer_from_before_another_process_had_published_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search takes so long that events recorded meanwhile are committed at its end."""
    embedder = LetterCountEmbedder()
    async with open_recall_harness(tmp_path, embedder=embedder, inline=True) as harness:
        await harness.record_texts(*FACTS)
        await harness.embed()
        await harness.search("窗台")
        now = time.time_ns()
        os.utime(harness.device.database.path.with_name("memory.db-wal"), ns=(now, now))
        monkeypatch.setattr(time, "time_ns", lambda: now)
        embedder.gate = asyncio.Event()
        slow = asyncio.create_task(harness.search("爬山"))
        for _ in range(STEPS):
            await asyncio.sleep(0)
        monkeypatch.setattr(time, "time_ns", lambda: now + WAL_PUBLISH_GRACE_NS + 1)
        embedder.gate.set()
        assert await slow is not await harness.search("爬山")
        assert await harness.search("爬山") is await harness.search("爬山")


async def test_a_model_that_breaks_leaves_words_and_is_tried_again(tmp_path: Path) -> None:
    embedder = LetterCountEmbedder()
    async with open_recall_harness(tmp_path, embedder=embedder) as harness:
        await harness.record_texts(*FACTS)
        embedder.fails = True
        await harness.embed()
        assert (await harness.search("爬山")).semantic == "failed"
        assert (await harness.texts_found("爬山")) == [FACTS[2]]
        embedder.fails = False
        await harness.embed()
        assert (await harness.search("爬山")).semantic == "used"


async def test_another_model_makes_all_vectors_again(tmp_path: Path) -> None:
    embedder = LetterCountEmbedder()
    async with open_recall_harness(tmp_path, embedder=embedder) as harness:
        await harness.record_texts(*FACTS)
        await harness.embed()
        await harness.search("爬山")
        embedder.name, embedder._dimension = "more letters", 48
        assert (await harness.search("火锅")).semantic == "pending"
        await harness.embed()
        assert (await harness.search("火锅")).semantic == "used"
        made = await harness.device.database.read(vector_store.embedding_state)
        assert made.model == "more letters"
        assert len(await harness.device.database.read(vectors)) == len(FACTS)


async def test_what_is_forgotten_or_edited_while_it_is_embedded_gets_no_vector(tmp_path: Path) -> None:
    embedder = LetterCountEmbedder()
    async with open_recall_harness(tmp_path, embedder=embedder) as harness:
        ids = await harness.record_texts(*FACTS)
        await harness.recall.projection_runner.catch_up()
        embedder.gate = asyncio.Event()
        making = asyncio.create_task(harness.semantic.embed_next())
        await harness.record_erasure(ids[2])
        await harness.recall.projection_runner.catch_up()
        embedder.gate.set()
        await making
        assert len(await harness.device.database.read(vectors)) == len(FACTS) - 1
        assert FACTS[2] not in await harness.texts_found("爬山", limit=200)


async def test_what_goes_or_is_edited_afterwards_takes_its_vector_along(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path, embedder=LetterCountEmbedder()) as harness:
        ids = await harness.record_texts(*FACTS)
        await harness.record_event("entry_added", entry_id="ent_a", section=["用户偏好"], text="- 喜欢看海", after=None)
        await harness.record_event("entry_added", entry_id="ent_b", section=["用户偏好"], text="- 喜欢看山", after=None)
        await harness.embed()
        before = await harness.device.database.read(vectors)
        assert len(before) == len(FACTS) + 2
        assert (await harness.search(FACTS[2])).hits[0].parts.semantic == 1.0  # the matrix is in memory
        await harness.record_erasure(ids[2])
        await harness.record_event("entry_removed", entry_id="ent_a", section=["用户偏好"])
        await harness.record_event(
            "entry_edited", entry_id="ent_b", section=["用户偏好"], text="- 喜欢看湖", base_hash=""
        )
        await harness.recall.projection_runner.catch_up()
        left = await harness.device.database.read(vectors)
        assert left < before
        assert len(left) == len(FACTS) - 1
        found = await harness.search("国庆节去黄山爬山，看海看山", limit=200)
        assert found.semantic == "partial", "the edited line waits for its vector"
        assert not {FACTS[2], "喜欢看海", "喜欢看山"} & {hit.item.text for hit in found.hits}


async def test_what_may_not_leave_is_no_empty_text_to_the_model(tmp_path: Path) -> None:
    embedder = LetterCountEmbedder()
    async with open_recall_harness(tmp_path, embedder=embedder, clean=lambda _: "") as harness:
        await harness.record_texts(*FACTS[:2])
        await harness.embed()
        assert embedder.texts == ["-", "-"]


async def test_a_damaged_vector_says_nothing_and_harms_no_other(tmp_path: Path) -> None:
    def damage(connection: Transaction) -> None:
        statement = "update recall_vectors set vector = x'00' where item_id = (select min(item_id) from recall_vectors)"
        connection.exec_driver_sql(statement)

    async with open_recall_harness(tmp_path, embedder=LetterCountEmbedder()) as harness:
        await harness.record_texts(*FACTS)
        await harness.embed()
        await harness.device.database.write(damage)
        answer = await harness.search(FACTS[2])
        assert (answer.semantic, answer.hits[0].item.text) == ("used", FACTS[2])
        assert (await harness.texts_found("重试"))[0] == FACTS[0]


async def test_filters_hold_for_meaning_too(tmp_path: Path) -> None:
    async with open_recall_harness(tmp_path, embedder=LetterCountEmbedder()) as harness:
        await harness.record_texts(*FACTS)
        await harness.record_texts("爬山的装备", kind="message", project_id="proj_b")
        await harness.embed()
        assert await harness.texts_found("国庆节去黄山爬山", project_id="proj_b") == ["爬山的装备"]
        assert await harness.texts_found("爬山的装备", kinds=("message",)) == ["爬山的装备"]


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "print('no json')", "import time; print('[]')"])
async def test_models_that_do_not_load_are_reported_as_failed(program: str) -> None:
    embedder = LocalEmbedder((sys.executable, "-c", program))
    with pytest.raises(EmbeddingFailed):
        await embedder.embed(["火锅"], query=True)
    await embedder.close()


async def test_a_dead_child_is_restarted_and_a_cancelled_query_does_not_mix_up_replies() -> None:
    program = """
import sys
print('{"name": "n", "dimension": 1}', flush=True)
for line in sys.stdin:
    if "die" in line:
        raise SystemExit
    if "slow" not in line:
        sys.stdout.buffer.write(b"abcd")
        sys.stdout.flush()
"""
    embedder = LocalEmbedder((sys.executable, "-c", program))
    assert await embedder.identity() == "n (1)"
    with pytest.raises(EmbeddingFailed):
        await embedder.embed(["die"], query=False)
    slow = asyncio.create_task(embedder.embed(["slow"], query=False))
    await asyncio.sleep(0)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert await embedder.embed(["a"], query=False) == [b"abcd"]
    await embedder.close()
    with pytest.raises(EmbeddingFailed):
        await embedder.identity()


async def test_a_child_that_hangs_is_replaced_and_vectors_go_on() -> None:
    program = """
import sys
print('{"name": "n", "dimension": 1}', flush=True)
for line in sys.stdin:
    if "hang" not in line:
        sys.stdout.buffer.write(b"abcd")
        sys.stdout.flush()
"""
    embedder = LocalEmbedder((sys.executable, "-c", program), reply_timeout=0.2)
    with pytest.raises(EmbeddingFailed, match="TimeoutError"):
        await embedder.embed(["hang"], query=False)
    patient = LocalEmbedder((sys.executable, "-c", program))
    assert await patient.embed(["a"], query=False) == [b"abcd"]
    embedder._reply_timeout = BROKEN_AFTER
    assert await embedder.embed(["a"], query=False) == [b"abcd"]
    await patient.close()
    await embedder.close()


# --- an API ---------------------------------------------------------------------------------------------------------


@contextmanager
def api(
    answer: Any = None, status: int = 200, *, length: list[int] | None = None, held: threading.Event | None = None
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A local OpenAI-compatible server that records its requests and their key.

    `length`: of its vectors, as they are by now. `held`: it answers when that is set.
    """
    heard: list[dict[str, Any]] = []
    numbers = length or [3]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append({"path": self.path, "key": self.headers.get("Authorization"), **asked})
            if held is not None:
                held.wait(BROKEN_AFTER)
            rows = [
                {"index": at, "embedding": [1.0, float(at), *[0.5] * (numbers[0] - 2)]}
                for at in range(len(asked["input"]))
            ]
            body = json.dumps({"data": rows[::-1]} if answer is None else answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", heard
    finally:
        server.shutdown()
        server.server_close()


async def test_an_api_is_asked_with_the_key_and_gets_redacted_text_only(tmp_path: Path) -> None:
    with api() as (url, heard):
        embedder = ApiEmbedder(url, "small", lambda: "k3y", timeout=20.0)
        async with open_recall_harness(tmp_path, embedder=embedder, clean=REDACTOR.clean) as harness:
            await harness.record_texts(*FACTS)
            await harness.embed()
            assert (await harness.search("我的电话是 13812345678")).semantic == "used"
            assert (await harness.device.database.read(vector_store.embedding_state)).model.startswith(
                "small at 127.0.0.1:"
            )
    assert {(one["path"], one["key"], one["model"]) for one in heard} == {("/v1/embeddings", "Bearer k3y", "small")}
    assert [one["input"] for one in heard[:2]] == [["a"], list(FACTS)]
    assert heard[-1]["input"] == ["我的电话是 [手机号]"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"error": {"message": "no"}}, 401),
        ({"data": []}, 200),
        ({"data": [{"index": 0, "embedding": ["x"]}]}, 200),
        ({"data": [{"index": 0, "embedding": []}]}, 200),
        ([], 200),
        ({}, 503),
        ({"data": [{"index": 0, "embedding": [float("nan"), 1.0]}]}, 200),
        ({"data": [{"index": 0, "embedding": [float("inf"), float("-inf")]}]}, 200),
    ],
)
async def test_an_api_without_vectors_is_reported_as_failed(answer: Any, status: int) -> None:
    with api(answer, status) as (url, _):
        embedder = ApiEmbedder(url, "small", lambda: None, timeout=20.0)
        with pytest.raises(EmbeddingFailed):
            await embedder.embed(["火锅"], query=True)
        await embedder.close()


async def test_an_api_that_cannot_be_reached_or_never_answers_leaves_words(tmp_path: Path) -> None:
    with api() as (closed, _):
        pass
    held = threading.Event()
    with api(held=held) as (silent, _):
        for url, timeout in ((closed, 20.0), (silent, 0.2)):
            embedder = ApiEmbedder(url, "small", lambda: None, timeout=timeout)
            async with open_recall_harness(tmp_path / str(timeout), embedder=embedder) as harness:
                await harness.record_texts(*FACTS)
                await harness.embed()
                answer = await harness.search("爬山")
                assert (answer.semantic, [hit.item.text for hit in answer.hits]) == ("failed", [FACTS[2]])
        held.set()


async def test_if_an_api_s_vectors_change_their_length_all_are_made_again(tmp_path: Path) -> None:
    length = [3]
    with api(length=length) as (url, heard):
        embedder = ApiEmbedder(url, "small", lambda: None, timeout=20.0)
        async with open_recall_harness(tmp_path, embedder=embedder) as harness:
            await harness.record_texts(*FACTS)
            await harness.embed()
            assert (await harness.search("爬山")).semantic == "used"
            length[0] = 5
            await harness.record_texts("又去了泰山")
            assert (await harness.search("爬山")).semantic == "failed"
            await harness.embed()
            assert (await harness.search("爬山")).semantic == "used"
            assert (await harness.device.database.read(vector_store.embedding_state)).model.endswith("(5)")
            assert len(await harness.device.database.read(vectors)) == len(FACTS) + 1
    assert list(FACTS) in [one["input"] for one in heard]
