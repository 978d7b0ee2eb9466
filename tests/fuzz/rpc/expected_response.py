"""What JSON-RPC 2.0 asks for a frame, found with another parser than the one that is attacked."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from bridge.api.errors import ERROR_CODES
from bridge.methods.registry import METHOD_TABLE
from bridge.rpc.messages import BATCH_LIMIT, DEPTH_LIMIT, INT_MAX, INT_MIN

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INTERNAL = -32700, -32600, -32601, -32603
OF_THE_FRAME: Final = frozenset({PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INTERNAL})
OF_A_METHOD: Final = frozenset(ERROR_CODES.values()) - OF_THE_FRAME  # an answer of a method may bear these, or a result
GIVES_UP: Final = 900  # levels at which a parser may leave off before it has seen the rest
_HALF: Final = re.compile("[\ud800-\udfff]")
_LARGE: Final = re.compile(rb"[eE]\+?\d{3}|\d{300}")  # a number that may be refused before the grammar breaks behind it


@dataclass(frozen=True)
class ExpectedResponse:
    """How many answers come, and which codes are right for each; a result is right where `may_succeed`."""

    answers: int
    codes: frozenset[int]
    may_succeed: bool = False
    batch: bool = False


@dataclass
class _ParserNotes:
    """What the other parser noticed on the way."""

    doubled: bool = False
    beyond: bool = False
    infinite: bool = False
    half: bool = False

    def pairs(self, found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(found)) != len(found):
            self.doubled = True
            self.half |= _has_half([list(pair) for pair in found])  # one of them is gone from the value
        return dict(found)

    def integer(self, digits: str) -> int:
        self.beyond |= len(digits) > 20 or not INT_MIN <= int(digits) <= INT_MAX
        return 0 if len(digits) > 20 else int(digits)

    def real(self, digits: str) -> float:
        value = float(digits)
        self.infinite |= value in {float("inf"), float("-inf")}
        return value


def expected_response(frame: bytes) -> ExpectedResponse:
    """What must come back."""
    seen = _ParserNotes()
    try:
        value = json.loads(
            frame.decode(),
            object_pairs_hook=seen.pairs,
            parse_int=seen.integer,
            parse_float=seen.real,
            parse_constant=_no_constant,
        )
    except RecursionError:
        return _refused(PARSE_ERROR, INVALID_REQUEST)
    except ValueError:
        deep = frame.count(b"[") + frame.count(b"{") > GIVES_UP
        return _refused(PARSE_ERROR, *([INVALID_REQUEST] if deep or _LARGE.search(frame) else []))
    if seen.half or _has_half(value):
        return _refused(PARSE_ERROR, *([INVALID_REQUEST] if _LARGE.search(frame) else []))
    if seen.infinite or seen.beyond or seen.doubled or _depth(value) > DEPTH_LIMIT:
        return _refused(INVALID_REQUEST)
    if not isinstance(value, list):
        return _single(value)
    if not 0 < len(value) <= BATCH_LIMIT:
        return _refused(INVALID_REQUEST)
    parts = [part for part in map(_single, value) if part.answers]
    codes = frozenset[int]().union(*(part.codes for part in parts))
    return ExpectedResponse(len(parts), codes, any(part.may_succeed for part in parts), batch=True)


def _refused(*codes: int) -> ExpectedResponse:
    return ExpectedResponse(1, frozenset(codes))


def _single(value: object) -> ExpectedResponse:
    """The rules of JSON-RPC for one request."""
    if not isinstance(value, dict):
        return _refused(INVALID_REQUEST)
    if "method" not in value and ("result" in value or "error" in value):
        return ExpectedResponse(0, frozenset())
    params, wire_id = value.get("params"), value.get("id")
    sound = (
        (wire_id is None or (isinstance(wire_id, str | int | float) and not isinstance(wire_id, bool)))
        and value.get("jsonrpc") == "2.0"
        and isinstance(value.get("method"), str)
        and (params is None or isinstance(params, dict | list))
    )
    if not sound:
        return _refused(INVALID_REQUEST)
    if "id" not in value:
        return ExpectedResponse(0, frozenset())
    if value["method"] == "$/cancelRequest":
        return ExpectedResponse(1, frozenset(), may_succeed=True)
    if value["method"] not in METHOD_TABLE:
        return _refused(UNKNOWN_METHOD)
    return ExpectedResponse(1, OF_A_METHOD, may_succeed=True)


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _has_half(value: object) -> bool:
    if isinstance(value, str):
        return bool(_HALF.search(value))
    if isinstance(value, dict):
        return any(_has_half(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(map(_has_half, value))


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0
