"""A question and its answer: the index brought level, words and meaning asked, one order made of both.

Decisions
    An answer holds everything recorded before it: a process that may move the view takes in what is new first, any
    other waits a moment for the one that does. After a large pull or import that would take minutes: a sidecar, which
    indexes in the background anyway, answers from what is indexed and says `partial`.
    The same question is answered from what was found before, until the database has changed.
    Common terms are counted, not read: the holders of the rarest terms are the candidates, `CANDIDATES` rows of them at
    most, newest first. So a question costs the same whether a thousand or a hundred thousand items hold 我们.
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

from sqlalchemy import Connection

from sync.clock import Clock, milliseconds
from sync.log.follower import Follower
from sync.log.log import Log
from sync.recall import pack, store
from sync.recall.counts import COUNTED, Counts
from sync.recall.dedup import folded
from sync.recall.fuse import Fused, Preset, factor, fused, preset_of
from sync.recall.meaning import Meaning, Question
from sync.recall.model import LARGEST_LIMIT, Answer, Ask, Hit, Kept, Parts, Scope, Semantic
from sync.recall.query import Wanted, matches_phrases, wanted
from sync.recall.score import NEIGHBOUR, Match, gathered, matches, values
from sync.recall.soundness import is_sound
from sync.recall.store import Filter
from sync.recall.view import RecallView
from sync.sections import RecallSettings
from sync.signals import wait_for_any

if TYPE_CHECKING:
    from sync.recall.matrix import Asked

CANDIDATES: Final = 9_000  # rows of the word index that one question reads
WEIGHED: Final = 600  # of the candidates, those that hold the most: their lengths, and their meaning, are looked at
LOOKED_AT: Final = 120  # of the best candidates, those whose text is read
THIN: Final = 3  # hits of the recent part that hold a good part of the question; below it the old part is searched too
KEPT_ANSWERS: Final = 64
LARGEST_BACKLOG: Final = 2_000  # events that a question to a sidecar waits for: about 0.2 s at 10,000 a second
PATIENCE: Final = 2.0  # seconds a process that may not move the view waits for the one that does
LOOK_AGAIN: Final = 0.05
MERGE_REST: Final = 0.02  # seconds between two steps, in which others record: they wait for one step at most
CALM: Final = 0.5  # seconds that a burst of updates, or a start, has before its words are indexed
DAY_MS: Final = 86_400_000
FENCE_BYTES: Final = 6
READY_PATIENCE: Final = 2.0  # seconds that an answer waits for a vector where the models are kept ready
EMBED_AGAIN: Final = 60.0  # seconds after which vectors that could not be made are tried again
PER_LINE: Final = 3  # hits asked for each line of a context: those found by meaning alone do not enter it


class Recall:
    """One profile's index and its answers. `moves`: whether this process may bring the index level."""

    def __init__(
        self, log: Log, clock: Clock, options: RecallSettings, *, moves: bool, meaning: Meaning | None = None
    ) -> None:
        self._view = RecallView()
        self.follower = Follower(log, self._view, clock)
        self._log = log
        self._clock = clock
        self._options = options
        self._moves = moves
        self.meaning = meaning or Meaning(log.database, None, clean=str, patience=0.0)
        given = options.weights
        self._preset = preset_of(options.preset, keyword=given.keyword, semantic=given.semantic, decay=given.decay)
        self._level_at: object = None
        self._not_moved_at: object = None
        self._answers: dict[tuple[Ask, str], Answer] = {}
        self._answers_at: object = None
        self._counts = Counts()
        self._keeps_up = False
        log.database.menders.works.append(self._mend)

    def _mend(self, connection: Connection) -> Counter[str]:
        """Begin the index again if a row of it cannot be understood."""
        if not store.exists(connection) or is_sound(connection):
            return Counter()
        self.follower.begin(connection)
        return Counter({"recall": 1})

    async def keep_up(self, is_busy: Callable[[], bool] = lambda: False) -> None:
        """Follow the log until cancelled, a moment behind it: a question asks for the rest itself.

        Vectors are made while nothing new comes; the models are ready then, and no answer waits long for them. While
        the log `is_busy` with a long pull it waits: the two would take turns at the one writer.
        """
        self.meaning.patience = min(self.meaning.patience, READY_PATIENCE)
        self._keeps_up = True
        try:
            await self._kept_up(is_busy)
        finally:
            self._keeps_up = False

    async def _kept_up(self, is_busy: Callable[[], bool]) -> None:
        await asyncio.sleep(CALM)
        while True:
            if is_busy():
                await asyncio.sleep(CALM)
                continue
            seen = self._log.changed.count
            await self.follow()
            while self.meaning.is_on and self._log.changed.count == seen and await self.meaning.embed_some():
                pass
            self.meaning.changed.set()
            await wait_for_any(EMBED_AGAIN if self.meaning.has_failed else None, (self._log.changed, seen))
            await asyncio.sleep(CALM)

    async def let_go(self) -> None:
        """Take out of the index, if there is one, what was forgotten or corrected; without one nothing is begun."""
        if await self._log.watermark(self.follower.view.name):
            await self.follow()

    async def follow(self) -> None:
        """Take in what the log has. Of what that forgets nothing stays, in the write-ahead log either."""
        await self.follower.catch_up()
        if self._view.forgot:
            self._view.forgot = False
            try:
                if await self._log.database.read(store.is_unmerged):
                    await self._merge()
            except BaseException:
                self._view.forgot = True
                raise

    async def _merge(self) -> None:
        """Merge the word index, anew where something came in between: that may leave a term behind."""
        database, is_done = self._log.database, False
        while not is_done:
            taken, begin = self._view.taken, True
            while await database.write(partial(store.merge, begin=begin)):
                begin = False
                await asyncio.sleep(MERGE_REST)
            await database.purge(patient=False)
            is_done = await database.write(partial(self._have_let_go, taken))

    def _have_let_go(self, taken: int, connection: Connection) -> bool:
        """Whether nothing was taken in since `taken`; on the thread that takes in."""
        is_done = self._view.taken == taken
        if is_done:
            store.have_let_go(connection)
        return is_done

    async def search(self, ask: Ask) -> Answer:
        """Hits for a question, best first. Raises StorageError."""
        is_level = await self._be_level()
        token = self._log.database.token()
        if token != self._answers_at:
            self._answers_at, self._answers = token, {}
        answers, key = self._answers, (ask, self._clock.now().date().isoformat())  # others may begin newer ones
        if key not in answers:
            is_steady = self._log.database.is_steady(token)
            answer = replace(await self._answer(ask), partial=not is_level)
            if is_level and is_steady and answer.semantic not in {"pending", "failed"} and len(answers) < KEPT_ANSWERS:
                answers[key] = answer
            return answer
        return answers[key]

    async def context(self, ask: Ask, *, max_chars: int) -> pack.Packed:
        """What to put before a message; an empty text where nothing has to do with it."""
        limit = min(ask.limit * PER_LINE, LARGEST_LIMIT)
        scope = Scope.RECENT if ask.scope is Scope.ALL else ask.scope
        answer = await self.search(replace(ask, scope=scope, limit=limit))
        sought = wanted(ask.query, ask.turns, self._clock)
        relevant = folded((hit for hit in answer.hits if pack.is_relevant(hit)), strictly=True)[: ask.limit]
        fence = self._clock.random_bytes(FENCE_BYTES).hex()
        here = {self._log.device_id, *self._log.earlier_ids}
        packed = pack.packed(relevant, sought.terms, fence=fence, max_chars=max_chars, here=here)
        return replace(packed, partial=answer.partial)

    async def _answer(self, ask: Ask) -> Answer:
        now_ms = milliseconds(self._clock.now())
        sought = wanted(ask.query, ask.turns, self._clock)
        preset = ask.preset or self._preset
        question = self.meaning.question(sought.text if preset.semantic else None)
        await asyncio.sleep(0)  # it is on its way before this process is busy with the words
        asked = replace(ask, limit=min(ask.limit, preset.limit or ask.limit), preset=preset)
        if ask.scope is Scope.RECENT:
            hot_since = now_ms - self._options.scope_days * DAY_MS
            recent = await self._within(
                replace(asked, since_ms=max(ask.since_ms or hot_since, hot_since)), sought, question
            )
            if sum(map(pack.is_relevant, recent.hits)) >= min(THIN, asked.limit):
                return replace(recent, cold=False)
        return await self._within(asked, sought, question)

    async def _within(self, ask: Ask, sought: Wanted, question: asyncio.Task[Question]) -> Answer:
        named = sought.since_ms is not None and ask.since_ms is None and ask.until_ms is None
        if named and not sought.prefers:
            span = Filter(ask.project_id, sought.since_ms, sought.until_ms, ask.kinds)
            answer = await self._asked(ask, sought, question, span)
            if answer.hits:
                return answer
        return await self._asked(ask, sought, question, Filter(ask.project_id, ask.since_ms, ask.until_ms, ask.kinds))

    async def _asked(self, ask: Ask, sought: Wanted, question: asyncio.Task[Question], within: Filter) -> Answer:
        """Words are searched while the models read the question."""
        words = await self._log.database.read(lambda connection: _matches(connection, sought, within, self._counts))
        preset, now_ms, meant_by = ask.preset or self._preset, milliseconds(self._clock.now()), await question

        def weighed(connection: Connection) -> tuple[list[Hit], Semantic]:
            if not store.exists(connection):
                return [], "off" if meant_by.state == "off" else "pending"  # nobody has kept this profile's index yet
            semantic, asked = self.meaning.asked(connection, meant_by)
            meant = None if asked is None else _meant(connection, asked, words, within)
            order = fused(words, meant, preset)
            return _hits(connection, order, sought, preset, limit=ask.limit, now_ms=now_ms), semantic

        hits, semantic = await self._log.database.read(weighed)
        return Answer(tuple(hits), semantic, within.since_ms, within.until_ms)

    async def _be_level(self) -> bool:
        """Take in what the log has and the index has not; whether the index has all of it then."""
        if await self._is_level():
            return True
        if not self._moves:
            return await self._wait_for_the_mover()
        if self._keeps_up:
            if await self._log.database.read(self.follower.backlog) > LARGEST_BACKLOG:
                await self.follower.step()  # the tables exist then, under today's rules
                return False
            await self.follower.catch_up()
        else:
            await self.follow()
        await self._is_level()  # so that the next question need not look
        return True

    async def _wait_for_the_mover(self) -> bool:
        token, waited = self._log.database.token(), 0.0
        if token == self._not_moved_at:
            return False  # no process moves it: until something is written no question waits again
        while not await self._is_level():
            if waited >= PATIENCE:
                self._not_moved_at = token
                return False
            await asyncio.sleep(LOOK_AGAIN)
            waited += LOOK_AGAIN
        return True

    async def _is_level(self) -> bool:
        """Whether the index has all of the log. What is recorded after the look has another token than this."""
        token = self._log.database.token()
        if token == self._level_at:
            return True
        is_steady = self._log.database.is_steady(token)
        is_level = await self._log.database.read(self._has_all)
        if is_level and is_steady:
            self._level_at = token
        return is_level

    def _has_all(self, connection: Connection) -> bool:
        return not self.follower.backlog(connection) and store.exists(connection)


def _hits(
    connection: Connection, order: Sequence[Fused], sought: Wanted, preset: Preset, *, limit: int, now_ms: int
) -> list[Hit]:
    first = order[: max(LOOKED_AT, limit * 3)]
    ready = store.kept(connection, [item.item_id for item in first])
    hits = [
        _hit(item, ready[item.item_id], sought, preset, now_ms)
        for item in first
        if item.item_id in ready and matches_phrases(ready[item.item_id].text, sought.phrases)
    ]
    hits.sort(key=lambda hit: (-hit.score, -hit.kept.item_id))
    return _with_neighbours(connection, folded(hits)[:limit])


def _meant(connection: Connection, asked: "Asked", words: Sequence[Match], within: Filter) -> dict[int, float]:
    """How far what meaning proposes stands out, and what words propose; with what neighbours in a conversation add."""
    best = asked.best(LOOKED_AT, store.allowed(connection, within))
    turns = store.turns(connection, list(best))
    beside = {other for near in turns.values() for other in near}
    known = asked.of(list({*best, *beside, *(match.item_id for match in words)}))
    found = {item_id: known[item_id] for item_id in (*best, *(match.item_id for match in words)) if item_id in known}
    for item_id in best:
        lift = max((known.get(other, 0.0) for other in turns.get(item_id, ())), default=0.0)
        found[item_id] += NEIGHBOUR * max(lift, 0.0)
    return found


def _with_neighbours(connection: Connection, hits: list[Hit]) -> list[Hit]:
    """Hits with what was said before and after them: the question to an answer, the answer to a question."""
    near = store.turns(connection, [hit.kept.item_id for hit in hits])
    texts = store.texts(connection, [at for found in near.values() for at in found])
    return [replace(hit, around=tuple(texts[at] for at in near.get(hit.kept.item_id, ()))) for hit in hits]


def _matches(connection: Connection, sought: Wanted, within: Filter, known: Counts) -> list[Match]:
    if not store.exists(connection):
        return []
    items, mean_length = store.totals(connection)
    counts = known.of(sought.terms, items, lambda term: store.count(connection, term, COUNTED))
    room = CANDIDATES
    holders: dict[str, Sequence[int]] = {}
    for term in sorted((term for term, count in counts.items() if count), key=lambda term: counts[term]):
        if room <= 0:
            break
        holders[term] = store.holders(connection, term, within, room)
        room -= len(holders[term])
    worth = values(sought.terms, counts, items=items)
    found = gathered(worth, holders, WEIGHED)
    lengths = store.lengths(connection, list(found))
    return _beside(connection, matches(found, lengths, whole=sum(worth.values()), mean_length=mean_length))


def _beside(connection: Connection, found: list[Match]) -> list[Match]:
    """What was said in a conversation next to what matches counts a little more."""
    best = found[:LOOKED_AT]
    turns = store.turns(connection, [match.item_id for match in best])
    score = {match.item_id: match.score for match in found}
    lifted = [
        match._replace(score=match.score + NEIGHBOUR * max((score.get(other, 0.0) for other in near), default=0.0))
        for match in best
        for near in (turns.get(match.item_id, ()),)
    ]
    return sorted(lifted, key=lambda match: (-match.score, -match.item_id)) + found[LOOKED_AT:]


def _hit(item: Fused, kept: Kept, sought: Wanted, preset: Preset, now_ms: int) -> Hit:
    preferred = (
        sought.prefers
        and sought.since_ms is not None
        and sought.since_ms <= kept.ts_ms < (inf if sought.until_ms is None else sought.until_ms)
    )
    times = factor(
        importance=kept.importance,
        marks=kept.marks,
        age_ms=now_ms - kept.ts_ms,
        preset=preset,
        preferred=preferred,
    )
    return Hit(kept, item.score * times, Parts(item.keyword, item.semantic, item.cover, times))
