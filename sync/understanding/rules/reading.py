"""What a rule reads in a clause, and a rule: a pattern for the predicate of a statement."""

import re
from dataclasses import dataclass

from sync.understanding.model import FactKind


@dataclass(frozen=True, slots=True)
class Reading:
    """What a rule reads in a clause. `slot` is final."""

    kind: FactKind
    slot: str | None = None
    is_negative: bool = False
    is_tentative: bool = False  # a change that names no topic: it counts only if it changes a known fact


@dataclass(frozen=True, slots=True)
class ClauseRule:
    """A pattern that says what a clause is about. The groups `o`, `p`, `q` name the object for a slot that carries it.

    `bare`: the rule holds without a first person in the clause or before it.
    """

    kind: FactKind
    topic: str | None
    pattern: re.Pattern[str]
    bare: bool = False


def rule(kind: FactKind, topic: str | None, pattern: str, *, bare: bool = False) -> ClauseRule:
    """A rule from the text of its pattern."""
    return ClauseRule(kind, topic, re.compile(pattern), bare)
