"""The score card: every one of the 243 cards against the rules, stated here a second time as a list."""

from itertools import product

import pytest

from sync.notes.model import Layer, Payload, ScoreCard
from sync.notes.score_card import decide, estimate

CARDS = list(product(range(3), repeat=5))


def allowed(d1: int, d2: int, d3: int, d4: int, d5: int) -> set[str]:
    """The layers that the rules allow, each read alone."""
    total = d1 + d2 + d3 + d4 + d5
    layers = set()
    if 4 <= total <= 5 and d4 >= 1:
        layers.add("L0")
    if 6 <= total <= 7 and d1 + d2 >= 3:
        layers.add("L1")
    if total >= 8 and d2 >= 1 and d4 >= 1:
        layers |= {"L0", "L1"}
    if d5 == 0:  # a single occasion
        layers = {"weak L1"} if d1 == 2 and d2 >= 1 else set()
    if d4 == 0:  # cannot be verified
        layers -= {"L1", "weak L1"}
    return set() if total <= 3 else layers


LAYERS = {
    Layer.NONE: set(),
    Layer.L0: {"L0"},
    Layer.L1: {"L1"},
    Layer.BOTH: {"L0", "L1"},
    Layer.WEAK_L1: {"weak L1"},
}


def test_every_card_gets_the_layers_that_the_rules_allow() -> None:
    decided = {card: LAYERS[decide(ScoreCard(*card)).layer] for card in CARDS}
    assert decided == {card: allowed(*card) for card in CARDS}


def test_the_table_has_all_cards_and_every_layer_occurs() -> None:
    assert len(CARDS) == 243
    assert {decide(ScoreCard(*card)).layer for card in CARDS} == set(Layer)


@pytest.mark.parametrize(
    ("payload", "layer"),
    [
        (Payload("接口命名时", ("用动词开头", "用名词"), "用动词开头", "choice", "high", "一律用动词开头"), Layer.BOTH),
        (Payload("always", ("ok",), "ok", "auto", "low"), Layer.NONE),
        (Payload("修这次构建时", ("暂时跳过",), "暂时跳过", "auto", "low"), Layer.NONE),
    ],
)
def test_the_estimate_separates_rules_from_single_occasions(payload: Payload, layer: Layer) -> None:
    assert decide(estimate(payload)).layer is layer
