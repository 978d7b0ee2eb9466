"""`recall/*`: ask the memory, or have it say what belongs to a message."""

from typing import Annotated, Any, Final, Literal

import msgspec

from bridge.api.filter_params import resolve_project_id, since_ms, until_ms
from bridge.api.method_table import Params
from sync.app import App
from sync.clock import Clock
from sync.context.budgets import TURN_CHARS, TURN_ITEMS
from sync.context.model import TurnRequest
from sync.contract import recall as contract
from sync.contract.recall import ContextJson, SearchJson
from sync.log.event_types import FACT_TYPES, LESSON_TYPES
from sync.log.model import MAX_NAME_LENGTH
from sync.recall.model import Scope, SearchRequest
from sync.recall.ranking.fusion import PRESETS
from sync.recall.ranking.fusion import Preset as RankingPreset

MAX_QUERY_CHARS: Final = 100_000  # a whole dialogue; what is looked at is bounded further inside
MAX_CONTEXT_CHARS: Final = 100_000

Query = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_QUERY_CHARS)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=200)]
Turns = Annotated[tuple[str, ...], msgspec.Meta(max_length=100)]
Preset = Literal["default", "seed000", "seed004"]


class Weights(Params, frozen=True):
    """`decay`: what a day leaves of a score."""

    keyword: Share
    semantic: Share
    decay: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0


class Search(Params, frozen=True):
    """`project`: its id or its path. `since`, `until`: a day, which is included, or a time.

    `turns`: the turns before it, oldest first.
    """

    query: Query
    limit: Limit = 10
    scope: Literal["all", "recent"] = "all"
    project: Name | None = None
    since: str | None = None
    until: str | None = None
    kinds: tuple[Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH)], ...] = ()
    weights: Preset | Weights | None = None
    turns: Turns = ()


class ContextParams(Search, frozen=True):
    """`sessionId`: of the conversation, in which each item is given once. `explain`: also the candidates."""

    limit: Limit = TURN_ITEMS
    max_chars: Annotated[int, msgspec.Meta(ge=200, le=MAX_CONTEXT_CHARS)] = TURN_CHARS
    session_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None
    explain: bool = False


async def search(app: App, params: Search) -> SearchJson:
    """Search the memory; the best hits first."""
    ask = _search_request(params, app.clock, hidden_ids=await _hidden_lessons(app))
    found = await app.recall().search(ask)
    has_facts = bool(found.hits) and await app.log.newest_position(FACT_TYPES)
    superseded = await app.context().superseded(found.hits) if has_facts else ()
    return contract.search_to_json(found, app.log.own_device_ids, superseded)


async def recall_context(app: App, params: ContextParams) -> ContextJson:
    """The context to put before a message, fenced; empty if nothing is relevant."""
    ask = _search_request(params, app.clock, hidden_ids=await _hidden_lessons(app, with_unconfirmed=True))
    request = TurnRequest(ask, params.max_chars, params.limit, app.draft_builder.safe_session_id(params.session_id))
    return contract.context_to_json(await app.context().turn(request), app.log.own_device_ids, explain=params.explain)


async def _hidden_lessons(app: App, *, with_unconfirmed: bool = False) -> tuple[str, ...]:
    """The lessons that are held back or contradicted, and the errors whose cure is not confirmed.

    Without lessons nothing is loaded.
    """
    if not await app.log.newest_position(LESSON_TYPES):
        return ()
    lessons = await app.lessons().all()
    unconfirmed = {one.lesson_id for one in lessons if one.state == "candidate" and one.kind == "error"}
    hidden = {one.lesson_id for one in lessons if one.state in {"held_back", "contradicted"}}
    return tuple(hidden | (unconfirmed if with_unconfirmed else set()))


def _search_request(params: Search, clock: Clock, *, hidden_ids: tuple[str, ...]) -> Any:
    given = params.weights
    named = PRESETS[given] if isinstance(given, str) else None
    return SearchRequest(
        query=params.query,
        limit=params.limit,
        scope=Scope(params.scope),
        project_id=resolve_project_id(params.project),
        since_ms=since_ms(params.since, clock),
        until_ms=until_ms(params.until, clock),
        kinds=params.kinds,
        preset=RankingPreset(given.keyword, given.semantic, decay=given.decay) if isinstance(given, Weights) else named,
        turns=params.turns,
        hidden_ids=hidden_ids,
    )
