"""Whatever is kept: any word of it finds it, and an index that grew is one that is built anew."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from sync.recall import store, vector_store
from sync.recall.segment import telling, terms, words
from tests.integration.recall_desk import LetterEmbedder, open_desk

HAN = st.text("的了我你天地火锅重试爬山海边记忆日出部署项目", min_size=1, max_size=6)
LATIN = st.text("abcdeXYZ012_-./", min_size=1, max_size=10).filter(lambda word: any(map(str.isalnum, word)))
WORDS = st.lists(HAN | LATIN | st.sampled_from(["the", "running", "café", "ｆｕｌｌ"]), min_size=1, max_size=6)


@given(st.text(max_size=60))
def test_a_text_is_found_by_itself(text: str) -> None:
    kept = {term.text for term in terms(text)}
    asked = {term.text for term in telling(text)}
    assert asked <= kept
    assert sorted(words(text)) == sorted(term.text for term in terms(text))
    assert bool(asked) == bool(kept)


@settings(max_examples=25)
@given(st.lists(WORDS, min_size=1, max_size=5), st.data())
def test_any_word_in_the_store_is_found_and_what_leaves_is_not(notes: list[list[str]], data: st.DataObject) -> None:
    async def living(folder: Path) -> None:
        async with open_desk(folder) as desk:
            ids = await desk.keep(*(" ".join(words) for words in notes))
            for event_id, words in zip(ids, notes, strict=True):
                for word in words:
                    assert event_id in {hit.kept.event_id for hit in (await desk.ask(word, limit=200)).hits}, word
            gone = data.draw(st.sampled_from(ids))
            await desk.forget(gone)
            for word in {word for words in notes for word in words}:
                assert gone not in {hit.kept.event_id for hit in (await desk.ask(word, limit=200)).hits}, word
            grown = await desk.device.database.read(lambda connection: list(store.everything(connection)))
            totals = await desk.device.database.read(store.totals)
            await desk.recall.follower.rebuild()
            assert await desk.device.database.read(lambda connection: list(store.everything(connection))) == grown
            assert await desk.device.database.read(store.totals) == totals

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(living(Path(folder)))


@settings(max_examples=25)
@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, max_size=4), st.data())
def test_vectors_that_grew_are_those_made_anew_and_what_is_forgotten_has_none(
    notes: list[list[str]], later: list[list[str]], data: st.DataObject
) -> None:
    async def living(folder: Path) -> None:
        async with open_desk(folder, embedder=LetterEmbedder()) as desk:
            ids = await desk.keep(*(" ".join(words) for words in notes))
            await desk.embed()
            assert (await desk.ask(notes[0][0])).semantic == "used"
            await desk.forget(data.draw(st.sampled_from(ids)))
            if later:
                await desk.keep(*(" ".join(words) for words in later))
            await desk.ask("any")  # which brings the index level
            items = {row.item_id for row in await desk.device.database.read(lambda one: list(store.everything(one)))}
            assert {row.item_id for row in await desk.device.database.read(_vectors)} <= items
            await desk.embed()
            grown = await desk.device.database.read(_vectors)
            assert {row.item_id for row in grown} == items
            found = await desk.ask(notes[0][0], limit=200)
            await desk.recall.follower.rebuild()
            await desk.embed()
            assert await desk.device.database.read(_vectors) == grown
            assert await desk.ask(notes[0][0], limit=200) == found

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(living(Path(folder)))


def _vectors(connection: Connection) -> list[vector_store.Row]:
    return vector_store.after(connection, 0)
