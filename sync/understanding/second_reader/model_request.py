"""The request to a model about waiting exchanges. Its prompt and its schema are files beside this module. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from sync.log.envelope import day_of
from sync.log.model import Event
from sync.understanding.likeness import content_of
from sync.understanding.model import Fact, FactOrigin
from sync.understanding.projection import Facts
from sync.understanding.second_reader.model_port import ModelRequest

PURPOSE: Final = "understanding"
MAX_TOKENS: Final = 4_000
MAX_KNOWN_FACTS: Final = 60  # that a request names


@dataclass(frozen=True, slots=True)
class WaitingExchange:
    """An exchange that waits for the model. `typed`: what the user typed; `previous`: the assistant's words before."""

    event: Event
    typed: str
    previous: str = ""
    tries: int = 0

    @property
    def event_id(self) -> str:
        """The id by which the model names it."""
        return self.event.event_id


def build_request(exchanges: Sequence[WaitingExchange], facts: Facts, today: str) -> ModelRequest:
    """The request about a batch of exchanges."""
    known = [
        {
            "fact_id": fact.fact_id,
            "statement": fact.statement,
            "said_on": fact.valid_from[:10],
            "confirmed": fact.origin is FactOrigin.USER_CONFIRMED,
        }
        for fact in _touched_facts(exchanges, facts.active)
    ]
    events = [
        {
            "event_id": one.event_id,
            "day": day_of(one.event).isoformat(),
            "assistant_before": one.previous,
            "typed": one.typed,
        }
        for one in exchanges
    ]
    content = json.dumps({"today": today, "known_facts": known, "events": events}, ensure_ascii=False)
    return ModelRequest(PURPOSE, _read("prompt.md"), ({"role": "user", "content": content},), _schema(), MAX_TOKENS)


def _touched_facts(exchanges: Sequence[WaitingExchange], active: Sequence[Fact]) -> list[Fact]:
    """The facts that the exchanges may touch: those stated in them or sharing words with them, then the newest."""
    ids = {one.event_id for one in exchanges}
    said = frozenset[str]().union(*(content_of(one.typed) for one in exchanges))

    def rank(fact: Fact) -> tuple[bool, bool]:
        return not ids.isdisjoint(fact.evidence), not said.isdisjoint(content_of(fact.statement))

    chosen = sorted(active, key=rank)[-MAX_KNOWN_FACTS:]
    return [fact for fact in active if fact in chosen]


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(_read("answer.schema.json"))
    return schema
