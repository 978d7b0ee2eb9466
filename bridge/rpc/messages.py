"""One frame to checked calls, and answers to bytes.

Decisions that live here
    * -32700 is for what is no JSON text: bad UTF-8, bad grammar, NaN, lone surrogates. -32600 is for JSON we refuse:
      deeper than 64, a name twice in one object, an integer beyond 64 bits, not a request. A -32600 carries the id
      where one can be read, so that the caller's promise ends instead of hanging.
    * msgspec parses in C but lets doubled names pass (the last wins). Proof in C that there are none: encode what was
      decoded; if that gives the very bytes received, nothing was dropped. Frames in another spelling (spaces, escaped
      characters) are checked on their skeleton, the text without its strings, where every ':' is one member.
    * An id is echoed as the bytes that came: 1.0 stays 1.0, an escape stays an escape.
    * A response without a request is ignored: answering it could start an endless exchange of errors. One with a string
      as its id may belong to a request that this program sent.
"""

import re
from typing import Final

import msgspec

from bridge.api.errors import ERROR_CODES, RpcError, RpcErrorData, rpc_error
from bridge.rpc.framing import SEND_LESS_HINT, FramingError

DEPTH_LIMIT: Final = 64  # arrays and objects inside each other; our own params need five
BATCH_LIMIT: Final = 1000  # calls in one batch: what one answer array may hold
INT_MIN: Final = -(2**63)  # integers live in 64-bit columns from here on
INT_MAX: Final = 2**63 - 1

NULL_ID: Final = b"null"


class Call(msgspec.Struct, frozen=True):
    """One request, or a notification when `id` is None. `id` holds the bytes of the wire."""

    method: str
    params: object
    id: bytes | None


class RejectedMessage(msgspec.Struct, frozen=True):
    """Something that is answered without being called."""

    id: bytes
    error: RpcError


class ClientResponse(msgspec.Struct, frozen=True):
    """The client's answer to a request of this program: its `result`, unless `is_error`."""

    id: str
    result: object
    is_error: bool


class DecodedFrame(msgspec.Struct, frozen=True):
    """What one frame holds. Responses whose id no request of ours can have are dropped, so `items` may be empty."""

    items: list[Call | RejectedMessage]
    batch: bool = False
    responses: tuple[ClientResponse, ...] = ()


class _Id(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(NULL_ID)


_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_decode_id: Final = msgspec.json.Decoder(_Id).decode
_decode_parts: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode

_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_DIGITS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_DIGITS: Final = b"0" * 19  # digits of the smallest integer that may leave 64 bits
_INTEGERS: Final = re.compile(rb"-?[0-9]{19,}(?![0-9.eE])")
_FRACTION: Final = re.compile(rb"[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+")

_HINTS: Final[dict[str, str]] = {
    "parse_error": "Send one complete JSON text in UTF-8 per frame.",
    "invalid_request": 'Send {"jsonrpc": "2.0", "id": …, "method": …, "params": {…}}.',
}


def reject(kind: str, message: str, id: bytes = NULL_ID) -> RejectedMessage:  # noqa: A002 - the wire's own name
    return RejectedMessage(id, RpcError(ERROR_CODES[kind], message, RpcErrorData(kind, _HINTS[kind], retryable=False)))


def reject_framing_error(error: FramingError) -> RejectedMessage:
    """The answer to bytes that never became a frame."""
    if error is FramingError.TOO_LARGE:
        return RejectedMessage(NULL_ID, rpc_error("invalid_request", error.value, SEND_LESS_HINT))
    return reject("parse_error", error.value)


def decode_frame(frame: bytes) -> DecodedFrame:
    """Everything one frame asks for. Never raises: what cannot be read becomes a refusal."""
    try:
        value = _decode(frame)
    except RecursionError:
        return _single(reject("invalid_request", f"nested deeper than {DEPTH_LIMIT}"))
    except msgspec.ValidationError:
        return _single(reject("invalid_request", "a number is out of range", _recover_id(frame)))
    except msgspec.DecodeError as error:
        return _single(reject("parse_error", str(error)))
    except UnicodeDecodeError:
        return _single(reject("parse_error", "the frame is not UTF-8"))
    canonical = _encode(value) == frame
    wrong = _violated_rule(frame, value, canonical=canonical)
    if wrong is not None:
        return _single(reject("invalid_request", wrong, _recover_id(frame)))
    if type(value) is list:
        return _batch(frame, value)
    return _decoded([_item(value, None if canonical else frame)], batch=False)


def _single(rejected: RejectedMessage) -> DecodedFrame:
    return DecodedFrame([rejected])


def _batch(frame: bytes, values: list[object]) -> DecodedFrame:
    if not values:
        return _single(reject("invalid_request", "the batch is empty"))
    if len(values) > BATCH_LIMIT:
        return _single(reject("invalid_request", f"a batch holds at most {BATCH_LIMIT} calls"))
    parts = zip(values, _decode_parts(frame), strict=True)
    return _decoded([_item(value, bytes(part)) for value, part in parts], batch=True)


def _decoded(items: list[Call | RejectedMessage | ClientResponse | None], *, batch: bool) -> DecodedFrame:
    """The frame of these members, with the responses to our own calls in a list of their own."""
    asked = [item for item in items if isinstance(item, Call | RejectedMessage)]
    return DecodedFrame(asked, batch, tuple(item for item in items if isinstance(item, ClientResponse)))


def _item(value: object, raw: bytes | None) -> Call | RejectedMessage | ClientResponse | None:
    """One member of a batch or the whole frame; None for a response to drop. `raw` are its bytes if not canonical."""
    if type(value) is not dict:
        return reject("invalid_request", "a request is an object")
    if "method" not in value and ("result" in value or "error" in value):
        answered = value.get("id")
        is_error = "error" in value
        return ClientResponse(answered, value.get("result"), is_error) if type(answered) is str else None
    id_value = value.get("id")
    if type(id_value) not in _ID_TYPES:
        return reject("invalid_request", "an id is a string, a number or null")
    wire_id: bytes | None = None
    if "id" in value:
        wire_id = _encode(id_value) if raw is None else bytes(_decode_id(raw).id)
    if value.get("jsonrpc") != "2.0":
        return reject("invalid_request", '"jsonrpc" must be "2.0"', wire_id or NULL_ID)
    method = value.get("method")
    if type(method) is not str:
        return reject("invalid_request", '"method" must be a string', wire_id or NULL_ID)
    params = value.get("params")
    if type(params) not in _PARAMS_TYPES:
        return reject("invalid_request", '"params" must be an object', wire_id or NULL_ID)
    return Call(method, params, wire_id)


_ID_TYPES: Final = frozenset({str, int, float, type(None)})
_PARAMS_TYPES: Final = frozenset({dict, list, type(None)})


# --- what msgspec does not check ---------------------------------------------------------------------------


def _violated_rule(frame: bytes, value: object, *, canonical: bool) -> str | None:
    """The rule a grammatical frame breaks, if any. One pass in C each; the skeleton only if something is odd."""
    shallow = frame.count(b"[") + frame.count(b"{") <= DEPTH_LIMIT
    short = _LONG_DIGITS not in frame.translate(_DIGITS)
    if canonical and shallow and short:
        return None
    skeleton = _STRINGS.sub(b"", frame)
    if not shallow and _too_deep(skeleton):
        return f"nested deeper than {DEPTH_LIMIT}"
    if not canonical and skeleton.count(b":") != _STRINGS.sub(b"", _encode(value)).count(b":"):
        return "a name stands twice in one object"
    if not short and any(_exceeds_64_bits(digits) for digits in _integers(skeleton)):
        return "an integer is beyond 64 bits"
    return None


def _too_deep(skeleton: bytes) -> bool:
    """Whether brackets nest beyond the limit: every pass takes away the innermost level."""
    brackets = skeleton.translate(_BRACKETS, _NOT_BRACKETS)
    for _ in range(DEPTH_LIMIT):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return False
    return True


def _integers(skeleton: bytes) -> list[bytes]:
    """Long runs of digits that are integers, not the digits of a fraction or an exponent."""
    return _INTEGERS.findall(_FRACTION.sub(b"", skeleton))


def _exceeds_64_bits(digits: bytes) -> bool:
    return len(digits) > 20 or not INT_MIN <= int(digits) <= INT_MAX


def _recover_id(frame: bytes) -> bytes:
    """The id of a frame that is refused as a whole, if it has a usable one."""
    try:
        found = bytes(_decode_id(frame).id)
        _decode(found)  # it may be what is wrong with the frame; echoed, it would make the answer unreadable
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NULL_ID
    return found if found[:1] in b'"-0123456789' else NULL_ID


# --- answers -------------------------------------------------------------------------------------------------


def encode_result(id: bytes, result: object) -> bytes:  # noqa: A002 - the wire's own name
    """The answer to a request that succeeded. TypeError or UnicodeEncodeError if the result is not JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, _encode(result))


def encode_error(id: bytes, error: RpcError) -> bytes:  # noqa: A002 - the wire's own name
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, _encode(error))


def encode_request(id_: str, method: str, params: object) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (_encode(id_), _encode(method), _encode(params))


def encode_notification(method: str, params: object) -> bytes:
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % _encode(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encode(method), _encode(params))


def encode_batch(answers: list[bytes]) -> bytes:
    return b"[%b]" % b",".join(answers)


def same_id(wire_id: bytes, value: object) -> bool:
    """Whether an id from the wire is the id a cancellation names."""
    return type(value) in _ID_TYPES and bool(_decode(wire_id) == value)


def unknown_method_error(name: str) -> RpcError:
    shown = name if len(name) <= 80 else name[:80] + "…"
    return rpc_error("unknown_method", f"there is no method {shown}", "`serve --openrpc` lists all methods.")
