"""Answer a query: bring the index up to date, search by words and by meaning, and rank the hits.

An answer includes everything recorded before it; only a sidecar with a large backlog answers at once, as `partial`.
Common terms are estimated, and at most `MAX_CANDIDATE_ROWS` rows are read, of the rarest terms first.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sync.clock import Clock, to_unix_ms
from sync.db.engine import Transaction
from sync.log.log import EventLog
from sync.log.projections.runner import ProjectionRunner
from sync.recall.dedup import deduplicate
from sync.recall.hits import MAX_RANKED_ITEMS, add_neighbours, rank_hits, with_relevance
from sync.recall.index import store
from sync.recall.index.extraction import DAILY_RECORD, TURN_KINDS
from sync.recall.index.indexer import RecallIndexer
from sync.recall.index.item_filter import ItemFilter, project_term
from sync.recall.model import Hit, Scope, ScoreParts, SearchRequest, SearchResult, Semantic
from sync.recall.query import ParsedQuery, parse_query
from sync.recall.ranking.bm25 import (
    NEIGHBOUR_SHARE,
    KeywordMatch,
    collect_candidates,
    score_candidates,
    term_values,
    with_sentences,
)
from sync.recall.ranking.document_frequency import COMMON_TERM_ITEMS, DocumentFrequencyCache
from sync.recall.ranking.fusion import customised_preset, fuse
from sync.recall.semantic.semantic_index import QueryVector, SemanticIndex
from sync.recall.text.date_expressions import NamedDay
from sync.runtime.change_counter import wait_for_any_change
from sync.settings.sections import RecallSettings

if TYPE_CHECKING:
    from sync.recall.semantic.vector_index import VectorQuery

MAX_CANDIDATE_ROWS: Final = 9_000  # of the term index, for one query
MAX_SCORED_ITEMS: Final = 600  # candidates whose length and meaning are compared
MOST_ITEMS: Final = 0.5  # of the index: so many are found faster without a filter
SPARE_ITEMS: Final = 2  # times as many are taken then, because some of them do not match
MIN_RECENT_HITS: Final = 3  # relevant recent hits; with fewer the older items are searched too
MIN_RELEVANCE: Final = 0.5  # of such a hit
MAX_CACHED_RESULTS: Final = 64
MAX_AWAITED_BACKLOG: Final = 2_000  # events that a query to a sidecar waits for, about 0.2 s
INDEXER_TIMEOUT: Final = 2.0  # seconds that another process waits for the indexing one
POLL_SECONDS: Final = 0.05
MERGE_PAUSE: Final = 0.02  # seconds between two merge steps, in which other writers get their turn
DEBOUNCE_SECONDS: Final = 0.5  # lets a start or a burst of updates pass
DAY_MS: Final = 86_400_000
RECORD_KINDS: Final = (DAILY_RECORD, *sorted(TURN_KINDS))  # of conversations
WARM_QUERY_TIMEOUT: Final = 2.0  # seconds that an answer waits for its vector when the models are loaded
EMBED_RETRY_SECONDS: Final = 60.0


class RecallService:
    """One profile's search. Only one process at a time may write the index."""

    def __init__(
        self,
        log: EventLog,
        clock: Clock,
        options: RecallSettings,
        *,
        may_index: bool,
        semantic_index: SemanticIndex | None = None,
    ) -> None:
        self._indexer = RecallIndexer(lambda: log.own_device_ids)
        self.projection_runner = ProjectionRunner(log, self._indexer, clock)
        self._log = log
        self._clock = clock
        self._options = options
        self._may_index = may_index
        self.semantic_index = semantic_index or SemanticIndex(log.database, None, redact=str, query_timeout=0.0)
        weights = options.weights
        self._preset = customised_preset(
            options.preset, keyword=weights.keyword, semantic=weights.semantic, decay=weights.decay
        )
        self._caught_up_token: object = None
        self._stale_token: object = None
        self._result_cache: dict[tuple[SearchRequest, str], SearchResult] = {}
        self._result_cache_token: object = None
        self._document_frequencies = DocumentFrequencyCache()
        self._runs_indexer = False

    async def run_indexer(self, is_busy: Callable[[], bool] = lambda: False) -> None:
        """Index new events shortly after they are recorded, until cancelled; a query indexes the rest itself.

        Vectors are made while no events arrive. While the log `is_busy` with a long pull the indexer pauses, because
        both would compete for the only writer.
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
                and await self.projection_runner.retrying(self.semantic_index.embed_next)
            ):
                pass
            self.semantic_index.changed.increment()
            await wait_for_any_change(
                EMBED_RETRY_SECONDS if self.semantic_index.has_failed else None, (self._log.changed, seen)
            )
            await asyncio.sleep(DEBOUNCE_SECONDS)

    async def apply_erasures(self) -> None:
        """Remove erased and corrected texts from the index, if there is one."""
        if await self._log.watermark(self.projection_runner.projection.entry.name):
            await self.catch_up()

    async def catch_up(self) -> None:
        """Index all new events. Erased terms leave the term index and the write-ahead log too."""
        await self.projection_runner.retrying(self.projection_runner.catch_up)
        if self._indexer.has_erased_terms:
            self._indexer.has_erased_terms = False
            try:
                if await self._log.database.read(store.is_unmerged):
                    await self._merge_term_index()
            except BaseException:
                self._indexer.has_erased_terms = True
                raise

    async def _merge_term_index(self) -> None:
        """Merge the term index; again if items were indexed meanwhile, because then an erased term may remain."""
        database, is_done = self._log.database, False
        while not is_done:
            batch_count, is_first = self._indexer.batch_count, True
            while await database.write(store.merge_step, is_first_step=is_first):
                is_first = False
                await asyncio.sleep(MERGE_PAUSE)
            await database.purge(wait_for_readers=False)
            is_done = await database.write(self._finish_merge, batch_count)

    def _finish_merge(self, connection: Transaction, batch_count: int) -> bool:
        """Whether no batch was indexed since. Called on the thread that indexes."""
        is_done = self._indexer.batch_count == batch_count
        if is_done:
            store.mark_merged(connection)
        return is_done

    async def search(self, request: SearchRequest) -> SearchResult:
        """Hits for a query, best first. An inconsistent index is built again. Raises StorageError."""
        return await self.projection_runner.retrying(lambda: self._search_index(request))

    async def _search_index(self, request: SearchRequest) -> SearchResult:
        is_complete = await self.ensure_caught_up()
        token = self._log.database.change_token()
        if token != self._result_cache_token:
            self._result_cache_token, self._result_cache = token, {}
        results, key = self._result_cache, (request, self._clock.now().date().isoformat())
        if key in results:
            return results[key]
        is_steady = self._log.database.is_token_readable(token)
        result = replace(await self._search(request), partial=not is_complete)
        is_final = is_complete and is_steady and result.semantic not in {"pending", "failed"}
        if is_final and len(results) < MAX_CACHED_RESULTS:
            results[key] = result
        return result

    async def latest(self, request: SearchRequest) -> list[Hit]:
        """The newest records of conversations, whatever the query says."""
        await self.ensure_caught_up()
        item_filter = ItemFilter(request.project_ids, kinds=RECORD_KINDS, hidden_ids=request.hidden_ids)

        return await self._unranked_hits(lambda connection: store.latest_items(connection, item_filter, request.limit))

    async def of_events(self, request: SearchRequest, event_ids: Sequence[str]) -> list[Hit]:
        """The items of these events within the request's projects, in the events' order."""
        if not event_ids:
            return []
        item_filter = ItemFilter(request.project_ids, hidden_ids=request.hidden_ids)
        return await self._unranked_hits(lambda connection: store.items_of_events(connection, event_ids, item_filter))

    async def _unranked_hits(self, find: Callable[[Transaction], Sequence[int]]) -> list[Hit]:
        def read(connection: Transaction) -> list[Hit]:
            if not store.is_created(connection):
                return []
            loaded = store.load_items(connection, find(connection))
            return [Hit(item, 1.0, ScoreParts(0.0, None, 0.0, 1.0), relevance=1.0) for item in loaded]

        return await self.projection_runner.retrying(lambda: self._log.database.read(read))

    async def _search(self, request: SearchRequest) -> SearchResult:
        now_ms = to_unix_ms(self._clock.now())
        query = parse_query(request.query, request.turns, self._clock)
        preset = request.preset or self._preset
        query_vector = self.semantic_index.embed_query(query.text if preset.semantic else None, request.patience)
        await asyncio.sleep(0)  # let it start before this process is busy with the words
        request = replace(request, limit=min(request.limit, preset.limit or request.limit), preset=preset)
        if request.scope is Scope.RECENT:
            since_ms = max(request.since_ms or 0, now_ms - self._options.scope_days * DAY_MS)
            recent = await self._search_scope(replace(request, since_ms=since_ms), query, query_vector)
            relevant = sum(hit.relevance >= MIN_RELEVANCE for hit in recent.hits)
            if relevant >= min(MIN_RECENT_HITS, request.limit):
                return replace(recent, includes_old=False)
        return await self._search_scope(request, query, query_vector)

    async def _search_scope(
        self, request: SearchRequest, query: ParsedQuery, query_vector: asyncio.Task[QueryVector]
    ) -> SearchResult:
        whole = ItemFilter(request.project_ids, request.since_ms, request.until_ms, request.kinds, request.hidden_ids)
        names_span = query.since_ms is not None and request.since_ms is None and request.until_ms is None
        if not names_span or (query.is_preference and not query.is_about_day):
            return await self._search_filtered(request, query, query_vector, whole)
        span = replace(whole, since_ms=query.since_ms, until_ms=query.until_ms)
        if query.is_about_day:
            return await self._items_of_day(request, query.named_day, span, whole)
        result = await self._search_filtered(request, query, query_vector, span)
        if len(result.hits) >= request.limit:
            return result
        anywhere = await self._search_filtered(request, query, query_vector, whole)
        if not result.hits:
            return anywhere
        first = {hit.item.item_id for hit in result.hits}
        others = [hit for hit in anywhere.hits if hit.item.item_id not in first]
        return replace(result, hits=(*result.hits, *others)[: request.limit])

    async def _items_of_day(
        self, request: SearchRequest, day: NamedDay | None, span: ItemFilter, whole: ItemFilter
    ) -> SearchResult:
        """What was recorded in a span, daily records first, then the most important; then what names its day."""
        found = await self._unranked_hits(lambda connection: _items_of_day(connection, day, span, whole))
        hits = await self._log.database.read(add_neighbours, deduplicate(found)[: request.limit])
        return SearchResult(tuple(hits), "off", span.since_ms, span.until_ms)

    async def _search_filtered(
        self,
        request: SearchRequest,
        query: ParsedQuery,
        query_vector: asyncio.Task[QueryVector],
        item_filter: ItemFilter,
    ) -> SearchResult:
        """Search by words while the models embed the query, then rank by both."""
        words = await self._log.database.read(_keyword_matches, query, item_filter, self._document_frequencies)
        preset, now_ms, vector = request.preset or self._preset, to_unix_ms(self._clock.now()), await query_vector

        def rank(connection: Transaction) -> tuple[list[Hit], Semantic]:
            if not store.is_created(connection):
                return [], "off" if vector.state == "off" else "pending"  # this profile has no index yet
            semantic, vector_query = self.semantic_index.query(connection, vector)
            scores = None
            if vector_query is not None:
                scores = _semantic_scores(connection, vector_query, words, item_filter, self._document_frequencies)
            order = fuse(words, scores, preset)
            hits = rank_hits(connection, order, query, preset, limit=request.limit, now_ms=now_ms)
            return with_relevance(hits, query, vector_query, vector.model), semantic

        hits, semantic = await self._log.database.read(rank)
        return SearchResult(tuple(hits), semantic, item_filter.since_ms, item_filter.until_ms)

    async def ensure_caught_up(self) -> bool:
        """Index new events; whether the index is complete then."""
        if await self._is_caught_up():
            return True
        if not self._may_index:
            return await self._wait_for_indexer()
        database, runner = self._log.database, self.projection_runner
        if self._runs_indexer and await database.read(runner.backlog) > MAX_AWAITED_BACKLOG:
            await database.upkeep.run(runner.apply_batch)  # creates the tables by the current rules
            return False
        if not await database.upkeep.run(runner.catch_up if self._runs_indexer else self.catch_up):
            return False
        await self._is_caught_up()  # so that the next query need not check
        return True

    async def _wait_for_indexer(self) -> bool:
        token, waited = self._log.database.change_token(), 0.0
        if token == self._stale_token or self._log.database.upkeep.is_locked_out:
            return False  # no process is indexing: do not wait again until something is written
        while not await self._is_caught_up():
            if waited >= INDEXER_TIMEOUT:
                self._stale_token = token
                return False
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        return True

    async def _is_caught_up(self) -> bool:
        """Whether the index is complete. Events recorded after this check change the token."""
        token = self._log.database.change_token()
        if token == self._caught_up_token:
            return True
        is_steady = self._log.database.is_token_readable(token)
        is_complete = await self._log.database.read(self._is_index_complete)
        if is_complete and is_steady:
            self._caught_up_token = token
        return is_complete

    def _is_index_complete(self, connection: Transaction) -> bool:
        return not self.projection_runner.backlog(connection) and store.is_created(connection)


def _items_of_day(connection: Transaction, day: NamedDay | None, span: ItemFilter, whole: ItemFilter) -> list[int]:
    found = store.best_items(connection, span, MAX_RANKED_ITEMS)
    if day is not None:
        possible = store.items_with_terms(connection, day.index_terms(), whole, MAX_RANKED_ITEMS)
        texts = store.item_texts(connection, possible)
        found += [item_id for item_id in possible if day.is_named_in(texts.get(item_id, ""))]
    return list(dict.fromkeys(found))


def _searched_part(
    connection: Transaction, item_filter: ItemFilter, document_frequencies: DocumentFrequencyCache
) -> ItemFilter | None:
    """The part of a filter by which the index is searched, with the bounds of its ids; None if nothing matches it.

    Projects that most items are of are no part of it: it is faster to leave out what is found of others.
    """
    bounded = store.with_id_bounds(connection, item_filter)
    if bounded is None or not item_filter.project_ids:
        return bounded
    items, _ = store.item_totals(connection)
    terms = [project_term(project_id) for project_id in item_filter.project_ids]
    counts = document_frequencies.lookup(
        terms, items, lambda term: store.count_items_with_term(connection, term, COMMON_TERM_ITEMS)
    )
    return bounded.of_any_project if sum(counts.values()) >= MOST_ITEMS * items else bounded


def _semantic_scores(
    connection: Transaction,
    vector_query: "VectorQuery",
    keyword_matches: Sequence[KeywordMatch],
    item_filter: ItemFilter,
    document_frequencies: DocumentFrequencyCache,
) -> dict[int, float]:
    """Semantic scores of the best items by meaning and of those found by words, raised by neighbouring turns."""
    searched = _searched_part(connection, item_filter, document_frequencies)
    count = MAX_RANKED_ITEMS * (1 if searched == item_filter else SPARE_ITEMS)
    near = {} if searched is None else vector_query.best(count, store.matching_item_ids(connection, searched))
    best = store.matching_among(connection, near, item_filter)
    turns = store.neighbouring_turns(connection, list(best))
    beside = {other for near in turns.values() for other in near}
    by_words = [match.item_id for match in keyword_matches]
    own = vector_query.scores_of(list({*best, *beside, *by_words}))
    scores = {item_id: own[item_id] for item_id in (*best, *by_words) if item_id in own}
    for item_id in best:
        lift = max((own.get(other, 0.0) for other in turns.get(item_id, ())), default=0.0)
        scores[item_id] += NEIGHBOUR_SHARE * max(lift, 0.0)
    return scores


def _keyword_matches(
    connection: Transaction, query: ParsedQuery, item_filter: ItemFilter, document_frequencies: DocumentFrequencyCache
) -> list[KeywordMatch]:
    created = store.is_created(connection)
    searched = _searched_part(connection, item_filter, document_frequencies) if created else None
    if searched is None:
        return []
    items, mean_length = store.item_totals(connection)
    counts = document_frequencies.lookup(
        query.terms, items, lambda term: store.count_items_with_term(connection, term, COMMON_TERM_ITEMS)
    )
    rows_left = MAX_CANDIDATE_ROWS
    items_by_term: dict[str, Sequence[int]] = {}
    for term in sorted((term for term, count in counts.items() if count), key=lambda term: counts[term]):
        if rows_left <= 0:
            break
        items_by_term[term] = store.items_with_terms(connection, [[term]], searched, rows_left)
        rows_left -= len(items_by_term[term])
    values = term_values(query.terms, counts, items=items)
    candidates = collect_candidates(values, items_by_term, MAX_SCORED_ITEMS)
    allowed = store.matching_among(connection, candidates, item_filter)
    candidates = {item_id: value for item_id, value in candidates.items() if item_id in allowed}
    lengths = store.term_counts(connection, list(candidates))
    matches = score_candidates(candidates, lengths, query_value=sum(values.values()), mean_length=mean_length)
    return _lift_neighbours(connection, with_sentences(matches, query.sentences, values, items_by_term))


def _lift_neighbours(connection: Transaction, matches: list[KeywordMatch]) -> list[KeywordMatch]:
    """Raise the score of matches next to another match in their conversation."""
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
