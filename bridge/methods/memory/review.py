"""`review/list`, `review/answer`: everything that waits for the user, whichever part of the memory asks."""

import base64
import binascii
from collections import Counter
from typing import Annotated, Final, Literal

import msgspec

from bridge.api.method_table import Params
from bridge.methods.memory.facts import Text
from sync.app import App
from sync.document.surfaces.notices import Notice
from sync.errors import InvalidInput
from sync.texts.language import ZH
from sync.understanding.model import FactStatus

Kind = Literal["fact", "device", "change", "daily", "document"]
KINDS: Final[tuple[Kind, ...]] = ("document", "device", "change", "fact", "daily")  # in the order of the list
_WAITING_NOTICES: Final = frozenset({Notice.MASS_DELETE, Notice.CLOUD_MASS_DELETE, Notice.ERASURE_WAITS})


class ReviewFilter(Params, frozen=True):
    """`kinds`: all without it. `cursor`: that of the page before."""

    kinds: tuple[Kind, ...] = ()
    cursor: Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class ReviewDecision(Params, frozen=True):
    """`answer`: one of the item's answers. `text`: the new words for `edit`."""

    item_id: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
    answer: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    text: Text | None = None


class ReviewItemJson(msgspec.Struct, frozen=True, rename="camel"):
    """`reason`: why it waits, such as candidate, questioned, outdated, or the name of a warning."""

    item_id: str
    kind: Kind
    text: str
    reason: str
    at: str
    answers: tuple[str, ...]

    @property
    def key(self) -> list[str]:
        """Its place among all items."""
        return [str(KINDS.index(self.kind)), self.at, self.item_id]


class ReviewListJson(msgspec.Struct, frozen=True, rename="camel"):
    """`counts`: of all items that wait, by kind. `nextCursor`: null on the last page."""

    items: tuple[ReviewItemJson, ...]
    counts: dict[str, int]
    next_cursor: str | None


class ReviewedJson(msgspec.Struct, frozen=True, rename="camel"):
    """`left`: how many items wait now."""

    item_id: str
    answer: str
    left: int


async def list_items(app: App, params: ReviewFilter) -> ReviewListJson:
    """What waits for the user: facts, changes of devices, devices, daily records, what happened to the document."""
    items = await _waiting(app)
    after = [] if params.cursor is None else _key_of(params.cursor)
    chosen = [one for one in items if one.key > after and one.kind in (params.kinds or KINDS)]
    page = tuple(chosen[: params.limit])
    cursor = _cursor_of(page[-1]) if len(chosen) > len(page) else None
    return ReviewListJson(page, dict(Counter(one.kind for one in items)), cursor)


async def answer(app: App, params: ReviewDecision) -> ReviewedJson:
    """Answer one item."""
    item = next((one for one in await _waiting(app) if one.item_id == params.item_id), None)
    if item is None:
        hint = "It may have been answered; `review/list` has what waits."
        raise InvalidInput("nothing waits under this id", field="itemId", hint=hint)
    if params.answer not in item.answers:
        hint = f"Give one of: {', '.join(item.answers)}."
        raise InvalidInput("that is no answer to this item", field="answer", hint=hint)
    if (params.answer == "edit") != (params.text is not None):
        raise InvalidInput("text goes with the answer edit", field="text", hint="Give the new words with edit alone.")
    await _carry_out(app, item, params.answer, params.text)
    return ReviewedJson(item.item_id, params.answer, len(await _waiting(app)))


async def _carry_out(app: App, item: ReviewItemJson, given: str, text: str | None) -> None:
    name, facts = item.item_id.partition(":")[2], app.facts()
    if item.kind == "document":
        await app.writable_document().resolve("accept" if given == "accept" else "restore")
    elif item.kind == "device" and given == "admit":
        await app.devices.admit(name)
    elif item.kind == "device":
        await facts.changes.refuse_device(name)
        await app.devices.revoke(name)
    elif item.kind == "change":
        await facts.changes.answer([name], accepted=given == "accept")
    elif item.kind == "daily":
        records = app.daily().record_service
        if given == "remove":
            await records.remove(name)
        else:
            is_outdated = item.reason == "outdated"
            await records.mark(name, "outdated" if is_outdated else "reviewed", on=not is_outdated)
        await app.daily().reconcile()
    elif given == "edit":
        await facts.edit(name, text or "")
    else:
        await {"confirm": facts.confirm, "reject": facts.reject, "retract": facts.retract}[given](name)


async def _waiting(app: App) -> list[ReviewItemJson]:
    """Everything that waits, in the order of the list."""
    items = [*await _facts(app), *await _changes(app), *await _records(app)]
    warnings = [name for name in await app.document.warnings() if name in _WAITING_NOTICES]
    answers = ("accept", "restore")
    items += [ReviewItemJson(f"document:{name}", "document", name, name, "", answers) for name in warnings]
    return sorted(items, key=lambda one: one.key)


async def _facts(app: App) -> list[ReviewItemJson]:
    items = []
    for fact in (await app.facts().current()).facts:
        is_questioned = fact.questioned_by is not None
        answers = ("confirm", "reject" if fact.status is FactStatus.CANDIDATE else "retract", "edit")
        reason = "questioned" if is_questioned else "candidate"
        if fact.waits:
            items.append(
                ReviewItemJson(f"fact:{fact.fact_id}", "fact", fact.statement, reason, fact.valid_from, answers)
            )
    return items


async def _changes(app: App) -> list[ReviewItemJson]:
    items = []
    for device in (await app.facts().changes.list()).devices:
        if device.device_id and not device.admitted and not device.this_device:
            name, since = device.name or device.device_id, device.since or ""
            item_id = f"device:{device.device_id}"
            items.append(ReviewItemJson(item_id, "device", name, "not_admitted", since, ("admit", "refuse")))
        for change in device.changes:
            text = change.after or "; ".join(change.before)
            item_id = f"change:{change.event_id}"
            if change.waits:
                items.append(ReviewItemJson(item_id, "change", text, change.kind, change.at, ("accept", "refuse")))
    return items


async def _records(app: App) -> list[ReviewItemJson]:
    items, chinese = [], await app.memory_service.language() is ZH
    for question in (await app.daily().review_questions()).questions:
        item_id, text = f"daily:{question.record.record_id}", question.text(chinese=chinese)
        answers = ("remove", "keep")
        items.append(ReviewItemJson(item_id, "daily", text, question.why, question.record.date, answers))
    return items


def _cursor_of(item: ReviewItemJson) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(item.key)).decode()


def _key_of(cursor: str) -> list[str]:
    """The place after which a page begins. Raises InvalidInput."""
    try:
        return msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=list[str])
    except (binascii.Error, ValueError):
        hint = "Begin again without a cursor."
        raise InvalidInput("the cursor is expired, or none of review/list", field="cursor", hint=hint) from None
