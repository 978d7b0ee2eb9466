"""Check payloads. Pure. Every fault of every payload is named at once, and one fault refuses all payloads."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sync.errors import InvalidInput
from sync.notes.model import AUDIENCES, CONFIDENCES, DIMENSIONS, SOURCES, Payload, ScoreCard

MAX_PAYLOADS: Final = 20  # in one call; a conversation has few judgements
MAX_TEXT_CHARS: Final = 2_000  # of one field
MAX_PRINCIPLES: Final = 10
MAX_NAMED_FAULTS: Final = 40
MAX_PAYLOAD_BYTES: Final = 40 * 1024  # as JSON: an event holds a payload with the fields of its question
MAX_SCORE: Final = 2

_TOO_LONG: Final = f"is longer than {MAX_TEXT_CHARS} characters"
_FIELDS: Final = ("scene", "principles", "choice", "evidence", "source", "confidence", "apply", "scores")
_CHOICES: Final = {"source": SOURCES, "confidence": CONFIDENCES, "apply": AUDIENCES}
_HINT: Final = (
    "A payload has scene, principles, choice (one of the principles), source (auto|remember|choice|init) and"
    " confidence (low|medium|high); evidence, apply (personal|project|team) and scores {D1…D5} are optional."
    " Nothing was written."
)


def parse_payloads(values: object) -> list[Payload]:
    """The payloads of an array. Raises InvalidInput that names every fault by its place."""
    if not isinstance(values, list):
        raise InvalidInput("payloads is an array of payloads", field="payloads", hint=_HINT)
    if len(values) > MAX_PAYLOADS:
        raise InvalidInput(f"a call takes at most {MAX_PAYLOADS} payloads", field="payloads", hint=_HINT)
    faults = [
        (f"payloads[{at}]{place}", fault)
        for at, value in enumerate(values)
        for place, fault in (*_faults(value), *_size_faults(value))
    ]
    if faults:
        shown = "; ".join(f"{place} {fault}" for place, fault in faults[:MAX_NAMED_FAULTS])
        more = f"; and {len(faults) - MAX_NAMED_FAULTS} more" if len(faults) > MAX_NAMED_FAULTS else ""
        raise InvalidInput(f"{shown}{more}", field=faults[0][0], hint=_HINT)
    return [payload_of(value) for value in values]


def payload_of(value: Mapping[str, Any]) -> Payload:
    """The payload of an object without faults."""
    scores = value.get("scores")
    return Payload(
        scene=_one_line(value["scene"]),
        principles=tuple(dict.fromkeys(_one_line(principle) for principle in value["principles"])),
        choice=_one_line(value["choice"]),
        source=value["source"],
        confidence=value["confidence"],
        evidence=_one_line(value.get("evidence") or ""),
        apply=value.get("apply") or "project",
        scores=None if scores is None else ScoreCard(*(scores[name] for name in DIMENSIONS)),
    )


def is_stored_payload(value: object) -> bool:
    """Whether `payload_of` reads the object of an event. Redaction may have made a text longer."""
    return all(fault == _TOO_LONG for _, fault in _faults(value))


def payload_to_json(payload: Payload) -> dict[str, Any]:
    """The object that `payload_of` reads."""
    value: dict[str, Any] = {
        "scene": payload.scene,
        "principles": list(payload.principles),
        "choice": payload.choice,
        "source": payload.source,
        "confidence": payload.confidence,
        "apply": payload.apply,
    }
    if payload.evidence:
        value["evidence"] = payload.evidence
    if payload.scores is not None:
        value["scores"] = dict(zip(DIMENSIONS, payload.scores.values, strict=True))
    return value


def _faults(value: object) -> Iterator[tuple[str, str]]:
    """The faults of a payload, as the place within it and what is wrong there."""
    if not isinstance(value, Mapping):
        yield "", "is no object"
        return
    yield from ((f".{_field_label(name)}", "is no field of a payload") for name in value if name not in _FIELDS)
    yield from _text_faults(value, "scene", required=True)
    yield from _principle_faults(value)
    yield from _text_faults(value, "evidence", required=False)
    for name, choices in _CHOICES.items():
        if value.get(name) not in choices and (name != "apply" or value.get(name) is not None):
            yield f".{name}", f"is {_state(value, name)}one of {', '.join(choices)}"
    yield from _score_faults(value.get("scores"))


def _size_faults(value: object) -> Iterator[tuple[str, str]]:
    size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    if size > MAX_PAYLOAD_BYTES:
        yield "", f"is {size} bytes, more than {MAX_PAYLOAD_BYTES}"


def _text_faults(value: Mapping[str, Any], name: str, *, required: bool) -> Iterator[tuple[str, str]]:
    text = value.get(name)
    if text is None and not required:
        return
    if not isinstance(text, str):
        yield f".{name}", "is missing" if text is None else "is no text"
    elif required and not _one_line(text):
        yield f".{name}", "is empty"
    elif len(text) > MAX_TEXT_CHARS:
        yield f".{name}", _TOO_LONG


def _principle_faults(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _text_faults(value, "choice", required=True)
    principles = value.get("principles")
    if principles is None or not isinstance(principles, list):
        yield ".principles", "is missing" if principles is None else "is no array"
        return
    if not 1 <= len(principles) <= MAX_PRINCIPLES:
        yield ".principles", f"has {len(principles)} texts, not 1 to {MAX_PRINCIPLES}"
    for at, principle in enumerate(principles):
        yield from ((f".principles[{at}]", fault) for _, fault in _text_faults({"": principle}, "", required=True))
    choice = value.get("choice")
    if isinstance(choice, str) and _one_line(choice) and not _is_among(choice, principles):
        yield ".choice", "is none of the principles"


def _score_faults(scores: object) -> Iterator[tuple[str, str]]:
    if scores is None:
        return
    if not isinstance(scores, Mapping):
        yield ".scores", "is no object"
        return
    yield from ((f".scores.{_field_label(name)}", "is no score") for name in scores if name not in DIMENSIONS)
    for name in DIMENSIONS:
        score = scores.get(name)
        if type(score) is not int or not 0 <= score <= MAX_SCORE:
            yield f".scores.{name}", "is missing" if score is None else f"is not 0 to {MAX_SCORE}"


def _is_among(choice: str, principles: Sequence[object]) -> bool:
    return _one_line(choice) in {_one_line(principle) for principle in principles if isinstance(principle, str)}


def _state(value: Mapping[str, Any], name: str) -> str:
    return "missing: " if value.get(name) is None else "not "


def _one_line(text: str) -> str:
    return " ".join(text.replace("\0", "").split())


def _field_label(name: object) -> str:
    return str(name)[:40]
