"""Give a model its context: the block of a system prompt, and the block before a message."""

import hmac
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sync.clock import Clock, to_unix_ms
from sync.context import selection, store
from sync.context.block_lines import block_lines
from sync.context.budgets import SESSION_TURN_CHARS, STABLE_CHARS
from sync.context.known_facts import KnownFacts
from sync.context.model import Candidate, Memory, Outcome, Reason, Silence, TurnBlock, TurnContext, TurnRequest
from sync.context.stable_block import StableBlock, compose_block, framed
from sync.context.turn_block import changed_line, doubt_note, newer_note, turn_block
from sync.context.work_requests import STANDING_QUERY, is_standing_statement, names_technology
from sync.errors import StorageError
from sync.log.authorship import ANSWER, Author
from sync.log.event_types import FACT_TYPES
from sync.log.log import EventLog
from sync.log.model import GLOBAL_PROJECT
from sync.recall.index.extraction import DAILY_RECORD, EXCHANGE, FACT, TOOL_OUTPUT, item_part
from sync.recall.model import MAX_LIMIT, Hit, Scope, SearchRequest
from sync.recall.query import ParsedQuery, is_context_dependent, parse_query
from sync.recall.ranking.fusion import Preset
from sync.recall.relevance.calibration import rare_weights
from sync.recall.relevance.message_signals import MessageSignals, read_signals, without_continuation
from sync.texts.language import Language
from sync.understanding.model import Fact, FactStatus

if TYPE_CHECKING:
    from sync.document.read.memory_service import MemoryService
    from sync.document.read.results import LoadScope
    from sync.recall.search import RecallService
    from sync.understanding.service import FactService

FENCE_BYTES: Final = 6  # of a fence, so that no stored text can guess how to close it
VECTOR_PATIENCE: Final = 0.15  # seconds that a message waits for its vector
SEARCHED: Final = 12  # hits that are weighed for a message, at least
HITS_PER_ITEM: Final = 3
STANDING_SEARCHED: Final = 40
LATEST_ITEMS: Final = 20  # the newest items, among which the last session is
KEPT_SESSIONS: Final = 64  # whose stable blocks are kept
SHORT_QUESTION_CHARS: Final = 40
BY_WORDS: Final = Preset(1.0, 0.0)
DIALOGUE_TURNS: Final = 5
CHANGED_MARK: Final = "changed:"  # before the id of a fact, in what a session was given: that it holds no longer
NO_SUBJECT: Final = 0.5  # rare words of a message that names nothing

log = logging.getLogger(__name__)


class ContextService:
    """One profile's context. Stable blocks of sessions are kept as long as the process runs."""

    def __init__(
        self,
        events: EventLog,
        memory: "MemoryService",
        recall: "Callable[[], RecallService]",
        facts: "Callable[[], FactService]",
        clock: Clock,
        given: TurnBlock = "all",
    ) -> None:
        self._log, self._turn_block = events, given
        self._memory = memory
        self._recall = recall
        self._facts = facts
        self._clock = clock
        self._fence_key = clock.random_bytes(32)
        self._known = KnownFacts()
        self._stable: OrderedDict[str, StableBlock] = OrderedDict()

    async def system_prompt(
        self, *, wait_ms: int, scope: "LoadScope" = "user", max_chars: int | None = None, session_id: str | None = None
    ) -> str:
        """The block for a system prompt, at most `max_chars` with its frame; empty without memories or room.

        The same memory gives the same block, byte for byte. Within a session it changes only if something in it was
        erased or withdrawn.
        """
        limit = STABLE_CHARS if max_chars is None else max_chars
        loaded = await self._memory.load(wait_ms=wait_ms, scope=scope)
        facts, language = await self._known_facts(), loaded.language
        lines = block_lines(loaded, facts, _importance)
        kept = self._stable.get(session_id) if session_id is not None else None
        if kept is not None and kept.holds(lines, facts, limit):
            return self._framed(kept.content, language)
        room = limit - len(self._framed("x", language)) + 1
        while room > 0:
            content, shown = compose_block(lines, loaded.digest, room, _is_vital)
            block = self._framed(content, language)
            if len(block) <= limit:
                if session_id is not None:
                    self._keep(session_id, StableBlock(content, limit, shown))
                return block
            room -= len(block) - limit  # neutralising has made it longer
        return ""

    async def turn(self, request: TurnRequest) -> TurnContext:
        """The block to put before a message; empty if nothing is relevant to it."""
        search = request.search
        if self._turn_block == "off":
            return TurnContext("", silence="off")
        signals = read_signals(search.query)
        if signals.is_small_talk and not (search.turns and is_context_dependent(search.query)):
            return TurnContext("", silence="small_talk")
        facts = await self._known_facts()
        candidates, partial = await self._candidates(search, signals, facts)
        query = parse_query(search.query, search.turns, self._clock)
        asks_for_past = signals.refers_to_past or signals.continues or query.is_about_day
        given_ids, spent = await self._given(request.session_id)
        decided = selection.decide(
            [
                one
                for one in await self._with_sources(candidates, search, query.terms)
                if one.hit.item.event_id not in facts.rejected_ids
                and (self._turn_block == "all" or one.hit.item.kind == FACT)
            ],
            session_id=request.session_id,
            given_ids=given_ids,
            sources=facts.sources,
            is_outdated=facts.is_outdated,
            asks_for_past=asks_for_past,
            max_items=request.max_items,
        )
        language = await self._memory.language()
        chosen = [one.hit for one in decided if one.outcome is Outcome.GIVEN]
        memories = await self._memories(chosen, facts, query, language, past=asks_for_past)
        memories = [_with_doubt(one, decided, language) for one in memories]
        changed = self._changed(request.session_id, facts, given_ids)
        text, hits = turn_block(
            memories,
            query.terms,
            fence=self._fence("\n".join(f"{one.text}\n{one.answer}\n{one.note}" for one in memories)),
            max_chars=min(request.max_chars, max(SESSION_TURN_CHARS - spent, 0)),
            own_device_ids=self._log.own_device_ids,
            language=language,
            news=[changed_line(fact, facts.newer(fact), language) for fact in changed],
        )
        if text and request.session_id is not None:
            names = [*(hit.item.event_id for hit in hits), *(CHANGED_MARK + fact.fact_id for fact in changed)]
            await self._record_given(request.session_id, names, spent + len(text))
        return TurnContext(text, hits, _without_room(decided, hits), _silence(decided, text), partial)

    def _changed(self, session_id: str | None, facts: KnownFacts, given_ids: Collection[str]) -> list[Fact]:
        """The facts in the stable block of a session that hold no longer, and of which it was not told."""
        block = self._stable.get(session_id) if session_id is not None else None
        changed = [] if block is None else block.changed(facts)
        return [fact for fact in changed if CHANGED_MARK + fact.fact_id not in given_ids]

    async def _with_sources(
        self, candidates: Sequence[Candidate], search: SearchRequest, terms: Mapping[str, float]
    ) -> list[Candidate]:
        """The candidates; in place of a daily record the exchanges that it sums up, or nothing if they are gone."""
        found: list[Candidate] = []
        for one in candidates:
            item = one.hit.item
            is_record = one.outcome is Outcome.GIVEN and item.kind == DAILY_RECORD
            names = await self._log.database.read(store.sources_of_record, item.event_id) if is_record else ()
            if names:
                found += selection.of_record(one, await self._recall().of_events(search, names), terms)
            else:
                found.append(one)
        return found

    async def _memories(
        self, chosen: Sequence[Hit], facts: KnownFacts, query: ParsedQuery, language: Language, *, past: bool
    ) -> list[Memory]:
        """What is said of the chosen items. An exchange is its question and its answer, whichever was found."""
        names = [hit.item.event_id for hit in chosen if hit.item.kind == EXCHANGE]
        sides = {
            (one.item.event_id, item_part(one.item.item_id, EXCHANGE)): one.item
            for one in await self._recall().of_events(SearchRequest("-"), names)
        }
        memories = []
        for hit in chosen:
            of_exchange = hit.item.kind == EXCHANGE
            asked = sides.get((hit.item.event_id, ""), hit.item) if of_exchange else hit.item
            answer = sides.get((hit.item.event_id, ANSWER)) if of_exchange else None
            text = "" if answer is None or answer is asked else selection.given_answer(asked, answer, query.terms)
            memory = Memory(replace(hit, item=asked), asked.text, text)
            has_tools = answer is not None and TOOL_OUTPUT in answer.marks
            memories.append(_with_facts(replace(memory, has_tool_output=has_tools), facts, language, past=past))
        return memories

    async def superseded(self, hits: Sequence[Hit]) -> frozenset[int]:
        """The ids of the items among these hits of which the user has replaced or taken back all that they state."""
        facts = await self._known_facts()
        items = (hit.item for hit in hits if hit.item.event_id not in facts.active_evidence)
        return frozenset(item.item_id for item in items if facts.is_outdated(item))

    async def _candidates(
        self, search: SearchRequest, signals: MessageSignals, facts: KnownFacts
    ) -> tuple[list[Candidate], bool]:
        """Everything that may belong to a message, best first; and whether the index was behind the log."""
        recall = self._recall()
        limit = max(SEARCHED, min(search.limit * HITS_PER_ITEM, MAX_LIMIT))
        scoped = replace(search, limit=limit, includes_global=True, patience=VECTOR_PATIENCE)
        result = await recall.search(scoped)
        if parse_query(search.query, search.turns, self._clock).is_about_day:
            return selection.asked_candidates(result.hits, Reason.DAY), result.partial
        found = selection.relevant_candidates(result.hits, _threshold, facts, _importance)
        if search.project_id is not None and not any(one.outcome is Outcome.GIVEN for one in found):
            found += await self._of_named_projects(scoped)
        if signals.continues and not (search.turns and is_context_dependent(search.query)):
            found = [*await self._continued(scoped), *found]
        if signals.self_mentions and len(search.query) <= SHORT_QUESTION_CHARS:
            found = [*selection.fact_candidates(result.hits, facts.active_ids), *found]
            answers = await recall.of_events(scoped, facts.ids_answering(search.query))
            found = [*selection.asked_candidates(answers, Reason.FACT), *found]
        if search.turns and signals.self_mentions and not any(one.outcome is Outcome.GIVEN for one in found):
            found = await self._of_dialogue(scoped)
        if signals.is_work_request and not names_technology(search.query):
            found += await self._standing_facts(scoped, facts)
        return found, result.partial

    async def _of_dialogue(self, search: SearchRequest) -> list[Candidate]:
        """What is relevant to the last turns together, while the user speaks of themselves."""
        dialogue = "\n".join((*search.turns[-DIALOGUE_TURNS:], search.query))
        result = await self._recall().search(replace(search, query=dialogue, turns=()))
        return selection.relevant_candidates(result.hits, _threshold)

    async def _of_named_projects(self, search: SearchRequest) -> list[Candidate]:
        """Relevant items of other projects that the message names."""
        folders = await self._log.database.read(store.project_folders)
        found: list[Hit] = []
        for project_id in selection.named_projects(search.query, folders):
            if project_id not in search.project_ids:
                asked = replace(search, project_id=project_id, includes_global=False)
                found += (await self._recall().search(asked)).hits
        return selection.relevant_candidates(found, _threshold)

    async def _continued(self, search: SearchRequest) -> list[Candidate]:
        """The last session that a message goes on with: the one it names, or the last one."""
        subject = without_continuation(search.query).strip()
        if sum(rare_weights(subject).values()) < NO_SUBJECT:
            latest = await self._recall().latest(replace(search, limit=LATEST_ITEMS))
            return selection.asked_candidates(selection.session_of(latest), Reason.CONTINUATION)
        result = await self._recall().search(replace(search, query=subject, turns=(), preset=BY_WORDS))
        return selection.asked_candidates(selection.continued_session(result.hits), Reason.CONTINUATION)

    async def _standing_facts(self, search: SearchRequest, facts: KnownFacts) -> list[Candidate]:
        """What the user said about how they want such work done: facts first, of the project first."""
        known = await self._recall().of_events(search, facts.ids_about_work(search.query))
        asked = replace(search, query=STANDING_QUERY, turns=(), limit=STANDING_SEARCHED, scope=Scope.ALL)
        result = await self._recall().search(replace(asked, preset=BY_WORDS))
        said = (hit for hit in result.hits if hit.item.written.author is not Author.MODEL)
        held = [*known, *(hit for hit in said if is_standing_statement(hit.item.text, search.query))]
        held.sort(key=lambda hit: hit.item.project_id == GLOBAL_PROJECT)
        return selection.asked_candidates(held, Reason.STANDING)

    async def _known_facts(self) -> KnownFacts:
        """The facts. Without any, nothing is loaded."""
        if not await self._log.newest_position(FACT_TYPES):
            return KnownFacts()
        current = await self._facts().current()
        if current.facts is not self._known.facts:
            self._known = KnownFacts(current.facts, current.outdated_texts, current.edit_events)
        return self._known

    async def _given(self, session_id: str | None) -> tuple[frozenset[str], int]:
        """The events of what a session was given, and the characters of its turn blocks."""
        if session_id is None:
            return frozenset(), 0
        block = self._stable.get(session_id)
        try:
            names, spent = await self._log.database.read(store.given, session_id)
        except StorageError as error:  # a session may be given an item once more
            log.warning("what a session was given cannot be read: %s", type(error).__name__)
            names, spent = frozenset[str](), 0
        return names if block is None else names | block.ids, spent

    async def _record_given(self, session_id: str, event_ids: Sequence[str], spent: int) -> None:
        now, database = to_unix_ms(self._clock.now()), self._log.database
        try:
            await database.upkeep.run(lambda: database.write(store.record_given, session_id, event_ids, spent, now))
        except StorageError as error:  # the context is right all the same
            log.warning("what a session was given was not noted: %s", type(error).__name__)

    def _keep(self, session_id: str, block: StableBlock) -> None:
        self._stable[session_id] = block
        self._stable.move_to_end(session_id)
        while len(self._stable) > KEPT_SESSIONS:
            self._stable.popitem(last=False)

    def _framed(self, content: str, language: Language) -> str:
        return framed(content, self._fence(content), language)

    def _fence(self, content: str) -> str:
        """A word that depends on what it encloses: the same for the same content, and unknown to who wrote that."""
        return hmac.digest(self._fence_key, content.encode(errors="surrogatepass"), "sha256")[:FENCE_BYTES].hex()


def _with_facts(memory: Memory, facts: KnownFacts, language: Language, *, past: bool) -> Memory:
    """A memory without what does not hold, or with what has replaced it if the user asks for the `past`."""
    item = memory.hit.item
    stated, holds = facts.stated_in(item), facts.present_text(item)
    is_over = holds != item.text
    candidates = (fact for fact in stated if fact.status is FactStatus.CANDIDATE and item.event_id not in fact.evidence)
    return replace(
        memory,
        text=item.text if past else holds,
        answer="" if is_over and not past else memory.answer,
        note=newer_note(next(filter(None, map(facts.newer, stated)), None), language, is_over=is_over),
        is_candidate=any(True for _ in candidates),
    )


def _with_doubt(memory: Memory, decided: Sequence[Candidate], language: Language) -> Memory:
    """A memory with what the user said later of the same thing, if no fact says what holds."""
    item = memory.hit.item
    later = None if memory.note or not item.written.is_users else selection.questioning(item, decided)
    return replace(memory, note=memory.note or doubt_note(later, language))


def _threshold(hit: Hit) -> float:
    return hit.threshold


def _without_room(decided: Sequence[Candidate], hits: Sequence[Hit]) -> tuple[Candidate, ...]:
    """The candidates, those marked that did not fit into the characters."""
    given = {hit.item.item_id for hit in hits}
    return tuple(
        replace(one, outcome=Outcome.NO_ROOM)
        if one.outcome is Outcome.GIVEN and one.hit.item.item_id not in given
        else one
        for one in decided
    )


def _silence(decided: Sequence[Candidate], text: str) -> Silence:
    if text:
        return ""
    repeated = {Outcome.ALREADY_GIVEN, Outcome.CURRENT_SESSION}
    return "all_given" if any(one.outcome in repeated for one in decided) else "nothing_relevant"


@lru_cache(maxsize=256)
def _importance(question: str) -> float:
    from sync.understanding.importance import estimate_importance  # noqa: PLC0415 - a message needs none of it

    return estimate_importance(question)


def _is_vital(text: str) -> bool:
    from sync.understanding.reading.reader import extract_statements  # noqa: PLC0415 - nearly always all lines fit

    return any(one.is_vital for one in extract_statements(text))
