"""Any word of a recorded text finds it, and an index that grew equals a rebuilt one."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.db.engine import Transaction
from sync.recall.index import store, vector_store
from sync.recall.text.tokenizer import content_terms, index_terms, tokenize
from tests.integration.recall.harness import LetterCountEmbedder, open_recall_harness
from tests.proof import examples

HAN = st.text("的了我你天地火锅重试爬山海边记忆日出部署项目", min_size=1, max_size=6)
LATIN = st.text("abcdeXYZ012_-./", min_size=1, max_size=10).filter(lambda word: any(map(str.isalnum, word)))
WORDS = st.lists(HAN | LATIN | st.sampled_from(["the", "running", "café", "ｆｕｌｌ"]), min_size=1, max_size=6)


@given(st.text(max_size=60))
def test_a_text_is_found_by_itself(text: str) -> None:
    kept = {term.text for term in tokenize(text)}
    asked = {term.text for term in content_terms(text)}
    assert asked <= kept
    assert sorted(index_terms(text)) == sorted(term.text for term in tokenize(text))
    assert bool(asked) == bool(kept)


@settings(max_examples=examples(25))
@given(st.lists(WORDS, min_size=1, max_size=5), st.data())
def test_any_word_in_the_store_is_found_and_what_leaves_is_not(notes: list[list[str]], data: st.DataObject) -> None:
    async def living(folder: Path) -> None:
        async with open_recall_harness(folder) as harness:
            ids = await harness.record_texts(*(" ".join(words) for words in notes))
            for event_id, words in zip(ids, notes, strict=True):
                for word in words:
                    assert event_id in {hit.item.event_id for hit in (await harness.search(word, limit=200)).hits}, word
            gone = data.draw(st.sampled_from(ids))
            await harness.record_erasure(gone)
            for word in {word for words in notes for word in words}:
                assert gone not in {hit.item.event_id for hit in (await harness.search(word, limit=200)).hits}, word
            grown = await harness.device.database.read(lambda connection: list(store.all_rows(connection)))
            totals = await harness.device.database.read(store.item_totals)
            await harness.recall.projection_runner.rebuild()
            assert await harness.device.database.read(lambda connection: list(store.all_rows(connection))) == grown
            assert await harness.device.database.read(store.item_totals) == totals

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(living(Path(folder)))


@settings(max_examples=examples(25))
@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, max_size=4), st.data())
def test_vectors_that_grew_equal_rebuilt_ones_and_erased_items_have_none(
    notes: list[list[str]], later: list[list[str]], data: st.DataObject
) -> None:
    async def living(folder: Path) -> None:
        async with open_recall_harness(folder, embedder=LetterCountEmbedder()) as harness:
            ids = await harness.record_texts(*(" ".join(words) for words in notes))
            await harness.embed()
            assert (await harness.search(notes[0][0])).semantic == "used"
            await harness.record_erasure(data.draw(st.sampled_from(ids)))
            if later:
                await harness.record_texts(*(" ".join(words) for words in later))
            await harness.search("any")  # which brings the index level
            items = {row.item_id for row in await harness.device.database.read(lambda one: list(store.all_rows(one)))}
            assert {row.item_id for row in await harness.device.database.read(_vectors)} <= items
            await harness.embed()
            grown = await harness.device.database.read(_vectors)
            assert {row.item_id for row in grown} == items
            found = await harness.search(notes[0][0], limit=200)
            await harness.recall.projection_runner.rebuild()
            await harness.embed()
            assert await harness.device.database.read(_vectors) == grown
            assert await harness.search(notes[0][0], limit=200) == found

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(living(Path(folder)))


def _vectors(connection: Transaction) -> list[vector_store.VectorRow]:
    return vector_store.vectors_after(connection, 0)
