"""A question and its answer: the index brought level, words and meaning asked, one order made of both.

Decisions
    An answer holds everything recorded before it: a process that may move the view takes in what is new first, any
    other waits a moment for the one that does. After a large pull or import that would take minutes: a sidecar, which
    indexes in the background anyway, answers from what is indexed and says `partial`.
    The same question is answered from what was found before, until the database has changed.
    Common terms are counted, not read: the holders of the rarest terms are the candidates, `MAX_CANDIDATE_ROWS` rows of
    them at most, newest first. So a question costs the same whether a thousand or a hundred thousand items hold 我们.
    Meaning proposes as many items as words do, and lifts what was said beside them as words do.
    Terms of what was forgotten leave the word index in steps, behind the questions where this process keeps up.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from sync.clock import Clock, to_unix_ms
from sync.db.engine import Transaction
from sync.log.log import EventLog
from sync.log.projections.runner import ProjectionRunner
from sync.recall import context_builder
from sync.recall.dedup import deduplicate
from sync.recall.index import store
from sync.recall.index.indexer import RecallIndexer
from sync.recall.index.integrity import is_intact
from sync.recall.index.store import ItemFilter
from sync.recall.model import MAX_LIMIT, Hit, Scope, ScoreParts, SearchRequest, SearchResult, Semantic, StoredItem
from sync.recall.query import ParsedQuery, matches_phrases, parse_query
from sync.recall.ranking.bm25 import NEIGHBOUR_SHARE, KeywordMatch, collect_candidates, score_candidates, term_values
from sync.recall.ranking.document_frequency import COMMON_TERM_ITEMS, DocumentFrequencyCache
from sync.recall.ranking.fusion import FusedItem, Preset, customised_preset, fuse, score_factor
from sync.recall.semantic.semantic_index import QueryVector, SemanticIndex
from sync.runtime.change_counter import wait_for_any_change
from sync.settings.sections import RecallSettings

if TYPE_CHECKING:
    from sync.recall.semantic.vector_index import VectorQuery

MAX_CANDIDATE_ROWS: Final = 9_000  # rows of the word index that one question reads
MAX_SCORED_ITEMS: Final = (
    600  # of the candidates, those that hold the most: their lengths, and their meaning, are looked at
)
MAX_RANKED_ITEMS: Final = 120  # of the best candidates, those whose text is read
MIN_RECENT_HITS: Final = (
    3  # hits of the recent part that hold a good part of the question; below it the old part is searched too
)
MAX_CACHED_RESULTS: Final = 64
MAX_AWAITED_BACKLOG: Final = 2_000  # events that a question to a sidecar waits for: about 0.2 s at 10,000 a second
INDEXER_TIMEOUT: Final = 2.0  # seconds a process that may not move the view waits for the one that does
POLL_SECONDS: Final = 0.05
MERGE_PAUSE: Final = 0.02  # seconds between two steps, in which others record: they wait for one step at most
DEBOUNCE_SECONDS: Final = 0.5  # seconds that a burst of updates, or a start, has before its words are indexed
DAY_MS: Final = 86_400_000
FENCE_BYTES: Final = 6
WARM_QUERY_TIMEOUT: Final = 2.0  # seconds that an answer waits for a vector where the models are kept ready
EMBED_RETRY_SECONDS: Final = 60.0  # seconds after which vectors that could not be made are tried again
HITS_PER_LINE: Final = 3  # hits asked for each line of a context: those found by meaning alone do not enter it


class RecallService:
    """One profile's index and its answers. `moves`: whether this process may bring the index level."""

    def __init__(
        self,
        log: EventLog,
        clock: Clock,
        options: RecallSettings,
        *,
        may_index: bool,
        semantic_index: SemanticIndex | None = None,
    ) -> None:
        self._indexer = RecallIndexer()
        self.projection_runner = ProjectionRunner(log, self._indexer, clock)
        self._log = log
        self._clock = clock
        self._options = options
        self._may_index = may_index
        self.semantic_index = semantic_index or SemanticIndex(log.database, None, redact=str, query_timeout=0.0)
        given = options.weights
        self._preset = customised_preset(
            options.preset, keyword=given.keyword, semantic=given.semantic, decay=given.decay
        )
        self._caught_up_token: object = None
        self._stale_token: object = None
        self._result_cache: dict[tuple[SearchRequest, str], SearchResult] = {}
        self._result_cache_token: object = None
        self._document_frequencies = DocumentFrequencyCache()
        self._runs_indexer = False
        log.database.row_repairs.functions.append(self._repair)

    def _repair(self, connection: Transaction) -> Counter[str]:
        """Begin the index again if a row of it cannot be understood."""
        if not store.is_created(connection) or is_intact(connection):
            return Counter()
        self.projection_runner.reset(connection)
        return Counter({"recall": 1})

    async def run_indexer(self, is_busy: Callable[[], bool] = lambda: False) -> None:
        """Follow the log until cancelled, a moment behind it: a question asks for the rest itself.

        Vectors are made while nothing new comes; the models are ready then, and no answer waits long for them. While
        the log `is_busy` with a long pull it waits: the two would take turns at the one writer.
        """
        self.semantic_index.query_timeout = min(self.semantic_index.query_timeout, WARM_QUERY_TIMEOUT)
        self._runs_indexer = True
        try:
            await self._run_indexer(is_busy)
        finally:
            self._runs_indexer = False

    async def _run_indexer(self, is_busy: Callable[[], bool]) -> None:
        await asyncio.sleep(DEBOUNCE_SECONDS)
        while True:
            if is_busy():
                await asyncio.sleep(DEBOUNCE_SECONDS)
                continue
            seen = self._log.changed.count
            await self.catch_up()
            while (
                self.semantic_index.is_enabled
                and self._log.changed.count == seen
                and await self.semantic_index.embed_next()
            ):
                pass
            self.semantic_index.changed.increment()
            await wait_for_any_change(
                EMBED_RETRY_SECONDS if self.semantic_index.has_failed else None, (self._log.changed, seen)
            )
            await asyncio.sleep(DEBOUNCE_SECONDS)

    async def apply_erasures(self) -> None:
        """Take out of the index, if there is one, what was forgotten or corrected; without one nothing is begun."""
        if await self._log.watermark(self.projection_runner.projection.entry.name):
            await self.catch_up()

    async def catch_up(self) -> None:
        """Take in what the log has. Of what that forgets nothing stays, in the write-ahead log either."""
        await self.projection_runner.catch_up()
        if self._indexer.has_erased_terms:
            self._indexer.has_erased_terms = False
            try:
                if await self._log.database.read(store.is_unmerged):
                    await self._merge_term_index()
            except BaseException:
                self._indexer.has_erased_terms = True
                raise

    async def _merge_term_index(self) -> None:
        """Merge the word index, anew where something came in between: that may leave a term behind."""
        database, is_done = self._log.database, False
        while not is_done:
            taken, begin = self._indexer.batch_count, True
            while await database.write(partial(store.merge_step, is_first_step=begin)):
                begin = False
                await asyncio.sleep(MERGE_PAUSE)
            await database.purge(wait_for_readers=False)
            is_done = await database.write(partial(self._finish_merge, taken))

    def _finish_merge(self, batch_count: int, connection: Transaction) -> bool:
        """Whether nothing was taken in since `taken`; on the thread that takes in."""
        is_done = self._indexer.batch_count == batch_count
        if is_done:
            store.mark_merged(connection)
        return is_done

    async def search(self, request: SearchRequest) -> SearchResult:
        """Hits for a question, best first. Raises StorageError."""
        is_level = await self._ensure_caught_up()
        token = self._log.database.change_token()
        if token != self._result_cache_token:
            self._result_cache_token, self._result_cache = token, {}
        answers, key = (
            self._result_cache,
            (request, self._clock.now().date().isoformat()),
        )  # others may begin newer ones
        if key not in answers:
            is_steady = self._log.database.is_token_readable(token)
            answer = replace(await self._search(request), partial=not is_level)
            if (
                is_level
                and is_steady
                and answer.semantic not in {"pending", "failed"}
                and len(answers) < MAX_CACHED_RESULTS
            ):
                answers[key] = answer
            return answer
        return answers[key]

    async def context(self, request: SearchRequest, *, max_chars: int) -> context_builder.ContextPack:
        """What to put before a message; an empty text where nothing has to do with it."""
        limit = min(request.limit * HITS_PER_LINE, MAX_LIMIT)
        scope = Scope.RECENT if request.scope is Scope.ALL else request.scope
        answer = await self.search(replace(request, scope=scope, limit=limit))
        sought = parse_query(request.query, request.turns, self._clock)
        relevant = deduplicate((hit for hit in answer.hits if context_builder.is_relevant(hit)), same_kind_too=True)[
            : request.limit
        ]
        fence = self._clock.random_bytes(FENCE_BYTES).hex()
        here = {self._log.device_id, *self._log.former_device_ids}
        packed = context_builder.build_context(
            relevant, sought.terms, fence=fence, max_chars=max_chars, own_device_ids=here
        )
        return replace(packed, partial=answer.partial)

    async def _search(self, request: SearchRequest) -> SearchResult:
        now_ms = to_unix_ms(self._clock.now())
        sought = parse_query(request.query, request.turns, self._clock)
        preset = request.preset or self._preset
        question = self.semantic_index.embed_query(sought.text if preset.semantic else None)
        await asyncio.sleep(0)  # it is on its way before this process is busy with the words
        asked = replace(request, limit=min(request.limit, preset.limit or request.limit), preset=preset)
        if request.scope is Scope.RECENT:
            hot_since = now_ms - self._options.scope_days * DAY_MS
            recent = await self._search_scope(
                replace(asked, since_ms=max(request.since_ms or hot_since, hot_since)), sought, question
            )
            if sum(map(context_builder.is_relevant, recent.hits)) >= min(MIN_RECENT_HITS, asked.limit):
                return replace(recent, includes_old=False)
        return await self._search_scope(asked, sought, question)

    async def _search_scope(
        self, request: SearchRequest, query: ParsedQuery, query_vector: asyncio.Task[QueryVector]
    ) -> SearchResult:
        named = query.since_ms is not None and request.since_ms is None and request.until_ms is None
        if named and not query.is_preference:
            span = ItemFilter(request.project_id, query.since_ms, query.until_ms, request.kinds)
            answer = await self._search_filtered(request, query, query_vector, span)
            if answer.hits:
                return answer
        return await self._search_filtered(
            request,
            query,
            query_vector,
            ItemFilter(request.project_id, request.since_ms, request.until_ms, request.kinds),
        )

    async def _search_filtered(
        self,
        request: SearchRequest,
        query: ParsedQuery,
        query_vector: asyncio.Task[QueryVector],
        item_filter: ItemFilter,
    ) -> SearchResult:
        """Words are searched while the models read the question."""
        words = await self._log.database.read(
            lambda connection: _keyword_matches(connection, query, item_filter, self._document_frequencies)
        )
        preset, now_ms, meant_by = request.preset or self._preset, to_unix_ms(self._clock.now()), await query_vector

        def weighed(connection: Transaction) -> tuple[list[Hit], Semantic]:
            if not store.is_created(connection):
                return [], "off" if meant_by.state == "off" else "pending"  # nobody has kept this profile's index yet
            semantic, asked = self.semantic_index.query(connection, meant_by)
            meant = None if asked is None else _semantic_scores(connection, asked, words, item_filter)
            order = fuse(words, meant, preset)
            return _rank_hits(connection, order, query, preset, limit=request.limit, now_ms=now_ms), semantic

        hits, semantic = await self._log.database.read(weighed)
        return SearchResult(tuple(hits), semantic, item_filter.since_ms, item_filter.until_ms)

    async def _ensure_caught_up(self) -> bool:
        """Take in what the log has and the index has not; whether the index has all of it then."""
        if await self._is_caught_up():
            return True
        if not self._may_index:
            return await self._wait_for_indexer()
        if self._runs_indexer:
            if await self._log.database.read(self.projection_runner.backlog) > MAX_AWAITED_BACKLOG:
                await self.projection_runner.apply_batch()  # the tables exist then, under today's rules
                return False
            await self.projection_runner.catch_up()
        else:
            await self.catch_up()
        await self._is_caught_up()  # so that the next question need not look
        return True

    async def _wait_for_indexer(self) -> bool:
        token, waited = self._log.database.change_token(), 0.0
        if token == self._stale_token:
            return False  # no process moves it: until something is written no question waits again
        while not await self._is_caught_up():
            if waited >= INDEXER_TIMEOUT:
                self._stale_token = token
                return False
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        return True

    async def _is_caught_up(self) -> bool:
        """Whether the index has all of the log. What is recorded after the look has another token than this."""
        token = self._log.database.change_token()
        if token == self._caught_up_token:
            return True
        is_steady = self._log.database.is_token_readable(token)
        is_level = await self._log.database.read(self._is_index_complete)
        if is_level and is_steady:
            self._caught_up_token = token
        return is_level

    def _is_index_complete(self, connection: Transaction) -> bool:
        return not self.projection_runner.backlog(connection) and store.is_created(connection)


def _rank_hits(
    connection: Transaction, ranked: Sequence[FusedItem], query: ParsedQuery, preset: Preset, *, limit: int, now_ms: int
) -> list[Hit]:
    first = ranked[: max(MAX_RANKED_ITEMS, limit * 3)]
    ready = store.load_items(connection, [item.item_id for item in first])
    hits = [
        _score_hit(item, ready[item.item_id], query, preset, now_ms)
        for item in first
        if item.item_id in ready and matches_phrases(ready[item.item_id].text, query.phrases)
    ]
    hits.sort(key=lambda hit: (-hit.score, -hit.item.item_id))
    return _add_neighbours(connection, deduplicate(hits)[:limit])


def _semantic_scores(
    connection: Transaction,
    vector_query: "VectorQuery",
    keyword_matches: Sequence[KeywordMatch],
    item_filter: ItemFilter,
) -> dict[int, float]:
    """How far what meaning proposes stands out, and what words propose; with what neighbours in a conversation add."""
    best = vector_query.best(MAX_RANKED_ITEMS, store.matching_item_ids(connection, item_filter))
    turns = store.neighbouring_turns(connection, list(best))
    beside = {other for near in turns.values() for other in near}
    known = vector_query.scores_of(list({*best, *beside, *(match.item_id for match in keyword_matches)}))
    found = {
        item_id: known[item_id]
        for item_id in (*best, *(match.item_id for match in keyword_matches))
        if item_id in known
    }
    for item_id in best:
        lift = max((known.get(other, 0.0) for other in turns.get(item_id, ())), default=0.0)
        found[item_id] += NEIGHBOUR_SHARE * max(lift, 0.0)
    return found


def _add_neighbours(connection: Transaction, hits: list[Hit]) -> list[Hit]:
    """Hits with what was said before and after them: the question to an answer, the answer to a question."""
    near = store.neighbouring_turns(connection, [hit.item.item_id for hit in hits])
    texts = store.item_texts(connection, [at for found in near.values() for at in found])
    return [replace(hit, neighbour_texts=tuple(texts[at] for at in near.get(hit.item.item_id, ()))) for hit in hits]


def _keyword_matches(
    connection: Transaction, query: ParsedQuery, item_filter: ItemFilter, document_frequencies: DocumentFrequencyCache
) -> list[KeywordMatch]:
    if not store.is_created(connection):
        return []
    items, mean_length = store.item_totals(connection)
    counts = document_frequencies.lookup(
        query.terms, items, lambda term: store.count_items_with_term(connection, term, COMMON_TERM_ITEMS)
    )
    room = MAX_CANDIDATE_ROWS
    holders: dict[str, Sequence[int]] = {}
    for term in sorted((term for term, count in counts.items() if count), key=lambda term: counts[term]):
        if room <= 0:
            break
        holders[term] = store.items_with_term(connection, term, item_filter, room)
        room -= len(holders[term])
    worth = term_values(query.terms, counts, items=items)
    found = collect_candidates(worth, holders, MAX_SCORED_ITEMS)
    lengths = store.term_counts(connection, list(found))
    return _lift_neighbours(
        connection, score_candidates(found, lengths, query_value=sum(worth.values()), mean_length=mean_length)
    )


def _lift_neighbours(connection: Transaction, matches: list[KeywordMatch]) -> list[KeywordMatch]:
    """What was said in a conversation next to what matches counts a little more."""
    best = matches[:MAX_RANKED_ITEMS]
    turns = store.neighbouring_turns(connection, [match.item_id for match in best])
    score = {match.item_id: match.score for match in matches}
    lifted = [
        match._replace(
            score=match.score + NEIGHBOUR_SHARE * max((score.get(other, 0.0) for other in near), default=0.0)
        )
        for match in best
        for near in (turns.get(match.item_id, ()),)
    ]
    return sorted(lifted, key=lambda match: (-match.score, -match.item_id)) + matches[MAX_RANKED_ITEMS:]


def _score_hit(fused_item: FusedItem, stored_item: StoredItem, query: ParsedQuery, preset: Preset, now_ms: int) -> Hit:
    preferred = (
        query.is_preference
        and query.since_ms is not None
        and query.since_ms <= stored_item.ts_ms < (inf if query.until_ms is None else query.until_ms)
    )
    times = score_factor(
        importance=stored_item.importance,
        marks=stored_item.marks,
        age_ms=now_ms - stored_item.ts_ms,
        preset=preset,
        is_preferred=preferred,
    )
    return Hit(
        stored_item,
        fused_item.score * times,
        ScoreParts(fused_item.keyword, fused_item.semantic, fused_item.cover, times),
    )
