"""`understanding/*`: what is known about the user and their projects, and the user's answers about it."""

from typing import Annotated, Final, Literal

import msgspec

from bridge.api.filter_params import resolve_project_id
from bridge.api.method_table import Params
from sync.app import App
from sync.contract import facts as contract
from sync.contract.facts import FactAnswerJson, FactExplanationJson, FactsJson
from sync.log.model import MAX_EVENT_ID_LENGTH, MAX_NAME_LENGTH
from sync.understanding.fact_events import PROJECT_SUBJECT
from sync.understanding.model import REMEMBER, USER_SUBJECT, Fact, FactStatus

FactName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_EVENT_ID_LENGTH)]
Text = Annotated[str, msgspec.Meta(max_length=4_096)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
FactKindName = Literal[
    "identity",
    "preference",
    "habit",
    "constraint",
    "relationship",
    "possession",
    "plan",
    "decision",
    "knowledge",
]
MAX_FACTS: Final = 1_000  # in one answer, unless the caller asks for more


class FactFilter(Params, frozen=True):
    """`query`: words that a statement has all of. `project`: its facts and the user's; without it, of all projects."""

    status: Literal["active", "candidate", "superseded", "retracted", "all"] = "active"
    kind: FactKindName | None = None
    project: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)] | None = None
    query: Text = ""
    limit: Limit = MAX_FACTS


class FactReview(Params, frozen=True):
    limit: Limit = MAX_FACTS


class FactId(Params, frozen=True):
    """`factId`: an id, or the beginning of one."""

    fact_id: FactName


class FactEdit(Params, frozen=True):
    """`text`: the fact's new words, on one line."""

    fact_id: FactName
    text: Text


class FactRetraction(Params, frozen=True):
    """`reason`: a word of the caller, such as document."""

    fact_id: FactName
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH, pattern="^[a-z_-]+$")] | None = None


async def list_facts(app: App, params: FactFilter) -> FactsJson:
    """What is known, newest first."""
    facts = await app.facts().current()
    chosen = [fact for fact in reversed(facts.facts) if _is_selected(fact, params)]
    return contract.facts_to_json(chosen[: params.limit], facts, app.log.own_device_ids)


async def review(app: App, params: FactReview) -> FactsJson:
    """What waits for the user: what somebody asked to remember, then candidates and questioned facts, oldest first."""
    facts = await app.facts().current()
    waiting = [fact for fact in facts.facts if fact.waits]
    waiting.sort(key=lambda fact: facts.statements[fact.fact_id].statement.reader != REMEMBER)
    return contract.facts_to_json(waiting[: params.limit], facts, app.log.own_device_ids)


async def confirm(app: App, params: FactId) -> FactAnswerJson:
    """Confirm a candidate or a questioned fact, or bring back a retracted one."""
    return await _answered(app, await app.facts().confirm(params.fact_id))


async def reject(app: App, params: FactId) -> FactAnswerJson:
    """Reject a candidate."""
    return await _answered(app, await app.facts().reject(params.fact_id))


async def edit(app: App, params: FactEdit) -> FactAnswerJson:
    """Give a fact other words, which confirms it."""
    return await _answered(app, await app.facts().edit(params.fact_id, params.text))


async def retract(app: App, params: FactRetraction) -> FactAnswerJson:
    """Retract a fact for good: stated again, it stays retracted. `understanding/confirm` brings it back."""
    return await _answered(app, await app.facts().retract(params.fact_id, reason=params.reason))


async def explain(app: App, params: FactId) -> FactExplanationJson:
    """Why a fact is what it is: its statements, the user's answers, what it replaced, and what replaced it."""
    explained = await app.facts().explain(params.fact_id)
    return contract.fact_explanation_to_json(explained, await app.facts().current(), app.log.own_device_ids)


async def _answered(app: App, fact: Fact) -> FactAnswerJson:
    facts = await app.facts().current()
    return {"fact": contract.fact_to_json(fact, facts, app.log.own_device_ids)}


def _is_selected(fact: Fact, wanted: FactFilter) -> bool:
    if wanted.status != "all" and fact.status != FactStatus(wanted.status):
        return False
    project_id = resolve_project_id(wanted.project)
    if project_id is not None and fact.subject not in {USER_SUBJECT, PROJECT_SUBJECT + project_id}:
        return False
    text = fact.statement.casefold()
    return wanted.kind in {None, fact.kind.value} and all(word in text for word in wanted.query.casefold().split())
