"""The score card: which layers it allows, and an estimate if the caller gives no scores. Pure.

A card that no rule allows is not written: docs/decisions/024-notes.md.
"""

import re
from typing import Final

import msgspec

from sync.notes.model import Layer, Payload, ScoreCard

MAX_UNWRITTEN_TOTAL: Final = 3
MIN_PRINCIPLE_TOTAL: Final = 6  # from here a principle, below it a fact
MIN_BOTH_TOTAL: Final = 8

# Words of the estimate: a lasting rule, a single occasion, and what can be checked.
_LASTING: Final = re.compile(
    r"一律|总是|始终|永远|必须|禁止|不要|不准|不得|避免|优先|默认|统一|每次|所有|凡是|以后|约定|规范|原则"
    r"|\b(?:always|never|must|every|all|prefer|avoid|default|do not|don't|convention|rule|standard|whenever)\b",
    re.IGNORECASE,
)
_SINGLE: Final = re.compile(
    r"这次|这一次|本次|今天|刚才|暂时|临时|先这样|\b(?:this time|today|just now|for now|temporar\w*|one-off|once)\b",
    re.IGNORECASE,
)
_VERIFIABLE: Final = re.compile(r"[A-Z]\w+|\w[./_]\w|\d|`[^`]+`")
_GENERIC_SCENE: Final = re.compile(r"^(?:平时|一般|任何时候|总之|always|generally|in general|anytime)$", re.IGNORECASE)
_MIN_SPECIFIC_CHARS: Final = 4  # of a scene that can be recognised
_MIN_EVIDENCE_CHARS: Final = 6
_PATH: Final = re.compile(r"[\w-]+/[\w./-]+|\w+\.(?:py|ts|tsx|js|go|rs|java|md|json|toml|yaml|yml)\b|:\d+")


class CardDecision(msgspec.Struct, frozen=True):
    """The layers to write, and the rule that decided."""

    layer: Layer
    reason: str


def decide(card: ScoreCard) -> CardDecision:
    """Apply the rules to a card: nothing at T ≤ 3, and a principle never with D4 = 0."""
    total = card.total
    if total <= MAX_UNWRITTEN_TOTAL:
        return CardDecision(Layer.NONE, f"T = {total} ≤ 3: too little value to keep")
    if card.verifiable == 0:
        return CardDecision(Layer.NONE, f"T = {total}, D4 = 0: it cannot be verified")
    if card.stable == 0:
        if card.decision_gain == 2 and card.transfer >= 1:
            return CardDecision(Layer.WEAK_L1, "D5 = 0, D1 = 2, D2 ≥ 1: a principle with stated bounds")
        return CardDecision(Layer.NONE, "D5 = 0: a single occasion")
    return _decide_lasting(card, total)


def _decide_lasting(card: ScoreCard, total: int) -> CardDecision:
    """A card with T ≥ 4, D4 ≥ 1 and D5 ≥ 1."""
    if total < MIN_PRINCIPLE_TOTAL:
        return CardDecision(Layer.L0, f"T = {total}, D4 ≥ 1")
    if total < MIN_BOTH_TOTAL:
        if card.decision_gain + card.transfer >= 3:
            return CardDecision(Layer.L1, f"T = {total}, D1 + D2 ≥ 3")
        return CardDecision(Layer.NONE, f"T = {total}, D1 + D2 < 3: no rule writes it")
    if card.transfer >= 1:
        return CardDecision(Layer.BOTH, f"T = {total} ≥ 8, D2 ≥ 1, D4 ≥ 1")
    return CardDecision(Layer.NONE, f"T = {total} ≥ 8, D2 = 0: it does not transfer")


def estimate(payload: Payload) -> ScoreCard:
    """A card from the words of a payload, if the caller gives none. It knows no more than they say.

    D1: 2 if something was rejected or the rule is strict, else 1. D2: 2 for a rule without a path or line number in
    its scene and choice, 0 for a single occasion that names one, else 1. D3: 2 for a specific scene, 0 for a general
    one. D4: 2 with evidence, 1 if the choice names something checkable or the user made it, else 0. D5: 0 for a
    single occasion, 2 for a lasting rule or one that the user states, else 1.
    """
    words = f"{payload.scene} {payload.choice} {payload.evidence}"
    is_single = bool(_SINGLE.search(words)) and not _LASTING.search(payload.choice)
    is_lasting = bool(_LASTING.search(f"{payload.choice} {payload.evidence}")) and not is_single
    is_stated = payload.source in {"remember", "choice"}
    is_tied = bool(_PATH.search(f"{payload.scene} {payload.choice}"))
    return ScoreCard(
        decision_gain=2 if payload.rejected or is_lasting else 1,
        transfer=0 if is_single and is_tied else 1 if is_single or is_tied else 2,
        trigger=_trigger(payload.scene),
        verifiable=_verifiable(payload, is_stated=is_stated),
        stable=0 if is_single else 2 if is_lasting or is_stated else 1,
    )


def _trigger(scene: str) -> int:
    if _GENERIC_SCENE.match(scene):
        return 0
    return 2 if len(scene) >= _MIN_SPECIFIC_CHARS else 1


def _verifiable(payload: Payload, *, is_stated: bool) -> int:
    if len(payload.evidence) >= _MIN_EVIDENCE_CHARS:
        return 2
    return 1 if is_stated or _VERIFIABLE.search(payload.choice) else 0
