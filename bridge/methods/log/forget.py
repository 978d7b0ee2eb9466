"""`memory/forget`, `memory/undo`: forget by meaning, with a preview. `events/forgetMatching`: by words, source or time.

`events/forget`, by id, is in `events.py`.
"""

from typing import Annotated

import msgspec

from bridge.api.filter_params import since_ms, until_ms
from bridge.api.method_table import Params
from bridge.methods.log.events import EventId
from sync.app import App
from sync.contract import forgetting as contract
from sync.contract.forgetting import ForgetJson, ForgettingJson, UndoneJson
from sync.document.erasure.selection import ErasureSelection
from sync.errors import InvalidInput
from sync.forget_service import MAX_FORGET_EVENTS, MAX_UNDO_SECONDS, ForgetSubject

Words = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]


class ForgetMeaning(Params, frozen=True):
    """One of `factId`, `eventIds` and `query`, and whether only to show what would go.

    `token`: that of a preview, which a `query` needs. `undoSeconds`: how long it is only hidden; 0 erases it at once.
    """

    fact_id: EventId | None = None
    event_ids: Annotated[list[EventId], msgspec.Meta(min_length=1, max_length=MAX_FORGET_EVENTS)] | None = None
    query: Words | None = None
    preview: bool = False
    token: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    undo_seconds: Annotated[int, msgspec.Meta(ge=0, le=MAX_UNDO_SECONDS)] | None = None


class UndoForgetting(Params, frozen=True):
    """`requestId`: that of the answer; without one the newest request that waits."""

    request_id: EventId | None = None


async def forget_meaning(app: App, params: ForgetMeaning) -> ForgetJson:
    """Show, or hide at once and erase later, what belongs together: fact, sentence, exchange, record, note and line."""
    given = [name for name in ("fact_id", "event_ids", "query") if getattr(params, name) is not None]
    if len(given) != 1:
        hint = "Give a fact's id, ids of events, or words."
        raise InvalidInput("give one of factId, eventIds and query", field="query", hint=hint)
    if params.query is not None and not ErasureSelection(params.query).words:
        raise InvalidInput("query holds no words", field="query", hint="Say which words are meant.")
    subject = ForgetSubject(params.fact_id, tuple(params.event_ids or ()), params.query)
    if params.preview:
        return contract.forget_preview_to_json(await app.forgetting.preview(subject))
    done = await app.forgetting.request(subject, token=params.token, undo_seconds=params.undo_seconds)
    return contract.accepted_forget_to_json(done)


async def undo(app: App, params: UndoForgetting) -> UndoneJson:
    """Show again what a request to forget has hidden, as long as it is not erased."""
    undone = await app.forgetting.undo(params.request_id)
    return {"requestId": undone.request_id, "events": len(undone.event_ids)}


class ForgetMatching(Params, frozen=True):
    """`query`: words, all of them; `source`: a device, session, project, origin or program.

    `since`, `until`: from the beginning of a day, to its end; or a time, which `until` does not include.

    `dryRun`: say what would go, forget nothing.
    """

    query: Words | None = None
    source: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)] | None = None
    since: str | None = None
    until: str | None = None
    dry_run: bool = True


async def forget_matching(app: App, params: ForgetMatching) -> ForgettingJson:
    """Erase events by words, source or time everywhere; by default only list them."""
    since, until = since_ms(params.since, app.clock), until_ms(params.until, app.clock)
    choice = ErasureSelection(params.query, params.source, since, until)
    if params.query is not None and not choice.words:  # else it would mean everything of that source or time
        raise InvalidInput("query holds no words", field="query", hint="Leave it out, or say which words are meant.")
    if choice.is_empty:
        raise InvalidInput("say what to forget", field="query", hint="Give query, source, since or until.")
    found = await app.erasure.find_matching(choice)
    erased = None if params.dry_run else await app.erasure.request([event.event_id for event in found])
    return contract.forget_matching_to_json(found, erased)
