"""Rules that are a pattern and a test of the value: tables of them are detectors."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sync.redaction.model import SecretSpan
from sync.redaction.pattern import Pattern
from sync.redaction.rules.boundaries import may_end, may_start


class PatternRule(NamedTuple):
    """Values of some kinds: each group of the pattern is one of its kind; without groups, the whole match is.

    `begins`, `ends`: whether no letter or digit may stand right before the value, and right after it.
    """

    pattern: Pattern
    kinds: tuple[str, ...]
    begins: bool = False
    ends: bool = False
    is_value: Callable[[str], bool] = bool


def find_values(text: str, rules: Sequence[PatternRule]) -> Iterator[SecretSpan]:
    """The values that the rules find, rule by rule."""
    for rule in rules:
        for whole, *groups in rule.pattern.find_all(text):
            for kind, (start, end) in zip(rule.kinds, groups or (whole,), strict=True):
                is_apart = (not rule.begins or may_start(text, start)) and (not rule.ends or may_end(text, end))
                if start >= 0 and is_apart and rule.is_value(text[start:end]):
                    yield SecretSpan(start, end, kind)
