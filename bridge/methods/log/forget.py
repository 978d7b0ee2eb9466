"""`events/forgetMatching`: forget by words, by source or by time (`events/forget`, by id, is in `events.py`)."""

from typing import Annotated

import msgspec

from bridge.api.filter_params import since_ms, until_ms
from bridge.api.method_table import Params
from sync.app import App
from sync.contract import forgetting as contract
from sync.contract.forgetting import ForgettingJson
from sync.document.erasure.selection import ErasureSelection
from sync.errors import InvalidInput

Words = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]


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
