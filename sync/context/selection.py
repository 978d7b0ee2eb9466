"""Decide which items belong to a message. Pure.

Relevant or silent: an item needs an absolute relevance, once a message has one the next best need half of it. What the
user asks for (a day, an earlier session, how they want work done) needs none.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from sync.context.known_facts import MAX_EXTRA, KnownFacts, size_of
from sync.context.model import Candidate, Importance, Outcome, Reason
from sync.log.authorship import ANSWER, Author
from sync.recall.dedup import deduplicate
from sync.recall.index.extraction import FACT, TOOL_OUTPUT, TURN_KINDS, item_part
from sync.recall.model import Hit, StoredItem
from sync.recall.text.tokenizer import index_terms
from sync.understanding.changes.effects import Effect, effect_of
from sync.understanding.changes.verbs import unread_change
from sync.understanding.model import USER_SUBJECT, FactKind, FactSection, FactStatus, Statement

COMPANION_SHARE: Final = 0.5  # of the threshold, for further items of a message that has a relevant one
STATEMENT_SHARE: Final = 0.3  # of the threshold, for what states a fact
STATING: Final = 0.2  # importance of a message that is nearly a statement
FACT_COVER: Final = 0.5  # of a question's weight: a fact with it answers the question
CONTINUED_SHARE: Final = 0.3  # of a message's rare words: an item with them is of the session to go on with
RECURRING_SHARE: Final = 0.6  # of a message's weight in an earlier question: that question recurs
MAX_OTHERS: Final = 1  # lines of programs, files, models and devices that are not admitted
SOURCES_OF_RECORD: Final = 2  # of a daily record that is relevant
NO_FACTS: Final = KnownFacts()
Threshold = Callable[[Hit], float]


def relevant_candidates(
    hits: Sequence[Hit], threshold: Threshold, facts: KnownFacts = NO_FACTS, importance: Importance = lambda _: 0.0
) -> list[Candidate]:
    """The hits, those below their threshold marked.

    What says something about the user needs a small part of it: a line costs little, a needed memory is worth much.
    The less a message looks like a statement, the more it needs. What others wrote needs the whole threshold, and is
    one line. `importance`: of a message.
    """

    def own_threshold(hit: Hit) -> float:
        whole = threshold(hit)
        if not _is_of_user(hit.item):
            return whole
        if hit.item.kind == FACT or any(one.status is not FactStatus.RETRACTED for one in facts.stated_in(hit.item)):
            return whole * STATEMENT_SHARE
        if not STATEMENT_SHARE * whole <= hit.relevance < whole or item_part(hit.item.item_id, hit.item.kind) == ANSWER:
            return whole
        return whole * (1.0 - (1.0 - STATEMENT_SHARE) * min(importance(hit.item.text) / STATING, 1.0))

    passed = any(hit.relevance >= own_threshold(hit) for hit in hits)
    candidates, others = list[Candidate](), 0
    for hit in hits:
        is_others = not _is_of_user(hit.item)
        needed = own_threshold(hit) * (COMPANION_SHARE if passed and not is_others else 1.0)
        outcome = Outcome.GIVEN if hit.relevance >= needed else Outcome.BELOW_THRESHOLD
        if is_others and outcome is Outcome.GIVEN:
            others += 1
            outcome = Outcome.GIVEN if others <= MAX_OTHERS else Outcome.OVER_LIMIT
        candidates.append(Candidate(hit, Reason.RELEVANT, needed, outcome))
    return candidates


def _is_of_user(item: StoredItem) -> bool:
    """Whether the user said it; the answer of an exchange stands with the user's question."""
    is_answer = item_part(item.item_id, item.kind) == ANSWER and item.written.author is Author.MODEL
    return item.written.is_users or (is_answer and item.written.is_proven)


def fact_candidates(hits: Sequence[Hit], fact_ids: Collection[str]) -> list[Candidate]:
    """Active facts that hold most of a short question of the user about themselves."""
    return asked_candidates(
        (hit for hit in hits if hit.item.event_id in fact_ids and hit.parts.cover >= FACT_COVER), Reason.FACT
    )


def asked_candidates(hits: Iterable[Hit], reason: Reason) -> list[Candidate]:
    """Items that the message asks for."""
    return [Candidate(hit, reason, 0.0) for hit in hits]


def continued_session(hits: Sequence[Hit]) -> list[Hit]:
    """The hits of the last session that has what the message names, its daily record first."""
    matching = [hit for hit in hits if hit.evidence.rare_share >= CONTINUED_SHARE]
    return session_of(matching)


def session_of(hits: Sequence[Hit]) -> list[Hit]:
    """The hits of the newest session among them; its daily record first."""
    if not hits:
        return []
    newest = max(hits, key=lambda hit: (hit.item.date, hit.item.ts_ms, hit.item.item_id)).item
    own = [hit for hit in hits if hit.item.session_id == newest.session_id and hit.item.date == newest.date]
    return sorted(own, key=lambda hit: hit.item.kind != "daily")


def named_projects(message: str, folders: Mapping[str, str]) -> list[str]:
    """The ids of the projects whose folder a message names. `folders`: their paths by id."""
    return [project_id for project_id, path in folders.items() if _is_named(message, path)]


def _is_named(message: str, path: str) -> bool:
    """Whether a message has the last part of a path, not as a part of a longer Latin word."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    pattern = rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])"
    return len(name) > 1 and re.search(pattern, message, re.IGNORECASE) is not None


def of_record(one: Candidate, sources: Sequence[Hit], term_weights: Mapping[str, float]) -> list[Candidate]:
    """The exchanges that stand for a daily record: all if the user asks for them, else those nearest to the message."""

    def held(hit: Hit) -> float:
        return sum(term_weights.get(term, 0.0) for term in set(index_terms(hit.item.text)))

    if one.reason is Reason.RELEVANT:
        sources = sorted(sources, key=held, reverse=True)[:SOURCES_OF_RECORD]
    return [replace(one, hit=replace(one.hit, item=hit.item)) for hit in sources]


def questioning(item: StoredItem, candidates: Sequence[Candidate]) -> StoredItem | None:
    """What the user said later, among the candidates, with a verb of change about the same thing."""
    older = Statement(item.text, FactKind.KNOWLEDGE, FactSection.PERSONAL)
    later = (one.hit.item for one in candidates if one.hit.item.date > item.date and _is_of_user(one.hit.item))
    for other in sorted(later, key=lambda one: one.ts_ms, reverse=True):
        is_said = item_part(other.item_id, other.kind) != ANSWER and other.event_id != item.event_id
        newer = unread_change(other.text, USER_SUBJECT) if is_said else None
        if newer is not None and effect_of(older, newer) is not Effect.NONE:
            return other
    return None


def given_answer(asked: StoredItem, answer: StoredItem, term_weights: Mapping[str, float]) -> str:
    """The answer to give. One with words of tools or web pages is given only if its own question recurs."""
    if TOOL_OUTPUT not in answer.marks:
        return answer.text
    held = set(index_terms(asked.text))
    recurs = sum(weight for term, weight in term_weights.items() if term in held)
    return answer.text if recurs >= RECURRING_SHARE * (sum(term_weights.values()) or 1.0) else ""


def decide(
    candidates: Sequence[Candidate],
    *,
    session_id: str | None,
    given_ids: Collection[str],
    sources: Callable[[StoredItem], frozenset[str]],
    is_outdated: Callable[[StoredItem], bool],
    asks_for_past: bool,
    max_items: int,
) -> list[Candidate]:
    """The final outcome of each candidate, best first.

    `given_ids`: events and entries that this session was given, in its stable block too; `sources`: those that say what
    an item says; `is_outdated`: whether it no longer holds. These count unless the user asks for the past.
    """
    kept = _without_duplicates(candidates, sources)
    decided, count = [], 0
    for one in kept:
        item, outcome = one.hit.item, one.outcome
        if outcome is Outcome.GIVEN and _is_current(item, session_id):
            outcome = Outcome.CURRENT_SESSION
        if outcome is Outcome.GIVEN and not asks_for_past:
            known = not sources(item).isdisjoint(given_ids)
            outcome = Outcome.SUPERSEDED if is_outdated(item) else Outcome.ALREADY_GIVEN if known else outcome
        if outcome is Outcome.GIVEN:
            count += 1
            outcome = outcome if count <= max_items else Outcome.OVER_LIMIT
        decided.append(replace(one, outcome=outcome))
    return decided


def _is_current(item: StoredItem, session_id: str | None) -> bool:
    return session_id is not None and item.session_id == session_id and item.kind in TURN_KINDS


def _without_duplicates(
    candidates: Sequence[Candidate], sources: Callable[[StoredItem], frozenset[str]]
) -> list[Candidate]:
    """One candidate for each text, and for each exchange and the facts in it: the exchange if it says more.

    The first reason counts, and an item that is given counts before one that is not.
    """
    ordered = sorted(candidates, key=lambda one: one.outcome is not Outcome.GIVEN)
    by_id: dict[int, Candidate] = {}
    for one in ordered:
        by_id.setdefault(one.hit.item.item_id, one)
    kept: list[Candidate] = []
    for hit in deduplicate((one.hit for one in by_id.values()), same_kind_too=True):
        one = replace(by_id[hit.item.item_id], hit=hit)
        same = next((at for at, other in enumerate(kept) if _is_stated_in(one, other, sources)), None)
        if same is None:
            kept.append(one)
        elif size_of(hit.item.text) > size_of(kept[same].hit.item.text) + MAX_EXTRA:
            kept[same] = replace(kept[same], hit=hit)
    return kept


def _is_stated_in(one: Candidate, other: Candidate, sources: Callable[[StoredItem], frozenset[str]]) -> bool:
    items = one.hit.item, other.hit.item
    kinds = {item.kind in TURN_KINDS for item in items}
    return len(kinds) == 2 and not sources(items[0]).isdisjoint(sources(items[1]))
