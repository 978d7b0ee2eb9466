"""A rule set whose answers on the golden log have changed has another number: logs are scanned, indexes made again."""

import pytest

from tests import rule_versions

NAMES = sorted(rule_versions.versions())


@pytest.fixture(scope="module")
def digests() -> dict[str, str]:
    return rule_versions.digests()


@pytest.mark.parametrize("name", NAMES)
def test_the_number_rises_with_the_answers(name: str, digests: dict[str, str]) -> None:
    stored, number = rule_versions.recorded()[name], rule_versions.versions()[name]
    moved = digests[name] != stored["digest"]
    assert not (moved and number == stored["version"]), f"the answers of {name} changed: raise its number {number}"
    assert not moved, "run `python -m tests.rule_versions`"
    assert number == stored["version"], "run `python -m tests.rule_versions`"


def test_the_answers_are_the_same_each_time(digests: dict[str, str]) -> None:
    assert rule_versions.digests() == digests
