"""The check of the facts for `doctor`."""

from typing import Any, cast

import pytest

from sync.startup import fact_check


class NoFacts:
    async def current(self) -> Any:
        raise AssertionError("the weights are looked at first")


async def test_damaged_weights_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_check, "broken_weights", lambda: ["zh"])

    check = await fact_check.check_facts(cast("Any", NoFacts()))

    assert check.ok is False
    assert "zh" in check.found
    assert "certain forms" in check.hint
