"""Reading frames strictly and answering exactly."""

import gc
import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.api.errors import INVALID_REQUEST, PARSE_ERROR
from bridge.rpc import messages
from bridge.rpc.framing import FramingError
from bridge.rpc.messages import DEPTH_LIMIT, Call, ClientResponse, RejectedMessage, decode_frame

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def only(frame: bytes) -> Call | RejectedMessage:
    incoming = decode_frame(frame)
    assert len(incoming.items) == 1
    return incoming.items[0]


def request(extra: str = '"params":{}', id_: str = "7") -> bytes:
    return f'{{"jsonrpc":"2.0","id":{id_},"method":"m",{extra}}}'.encode()


def nested(levels: int) -> str:
    """An object with so many arrays inside each other."""
    return '{"a":' + "[" * levels + "1" + "]" * levels + "}"


def refused(frame: bytes) -> tuple[int, bytes]:
    item = only(frame)
    assert isinstance(item, RejectedMessage), item
    return item.error.code, item.id


@pytest.mark.parametrize(
    "frame",
    [
        b"{",
        b"nonsense",
        b"",
        b'{"jsonrpc":"2.0"} {}',
        b"{'a':1}",
        request('"params":{"a":NaN}'),
        request('"params":{"a":Infinity}'),
        request('"params":{"a":-Infinity}'),
        request('"params":{"a":01}'),
        request('"params":{"a":1,}'),
        request('"params":{"a":"\\ud800"}'),
        request('"params":{"\\udc00":1}'),
        request('"params":{"a":"\\ud800\\ud800"}'),
        request('"params":{"a":"\x01"}'),
        request('"params":{"a":"?"}').replace(b"?", b"\xff"),
        request('"params":{"a":"?"}').replace(b"?", b"\xed\xa0\x80"),
        request('"params":{"a":"?"}').replace(b"?", b"\xc0\xaf"),
        request().decode().encode("utf-16"),
    ],
)
def test_what_is_no_json_text_is_a_parse_error_without_an_id(frame: bytes) -> None:
    assert refused(frame) == (PARSE_ERROR, b"null")


@pytest.mark.parametrize(
    ("frame", "id_"),
    [
        (b"1", b"null"),
        (b'"text"', b"null"),
        (b"null", b"null"),
        (b"[]", b"null"),
        (b"{}", b"null"),
        (b'{"jsonrpc":"2.0","id":7}', b"7"),
        (b'{"jsonrpc":"1.0","id":7,"method":"m"}', b"7"),
        (b'{"id":7,"method":"m"}', b"7"),
        (b'{"jsonrpc":2.0,"id":7,"method":"m"}', b"7"),
        (b'{"jsonrpc":"2.0","id":7,"method":1}', b"7"),
        (b'{"jsonrpc":"2.0","method":1}', b"null"),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', b"null"),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"m"}', b"null"),
        (b'{"jsonrpc":"2.0","id":[7],"method":"m"}', b"null"),
        (request('"params":"text"'), b"7"),
        (request('"params":1'), b"7"),
        (request('"params":{"a":1,"a":2}'), b"7"),
        (request('"params":{"a":1, "a":2}'), b"7"),
        (request('"params":{"a":1,"\\u0061":2}'), b"7"),
        (request('"params":[{"b":{"a":1,"a":1}}]'), b"7"),
        (request('"method":"n"'), b"7"),
        (request(f'"params":{nested(64)}'), b"7"),
        (request(f'"params":{nested(100_000)}'), b"null"),
        (request('"params":{"a":9223372036854775808}'), b"7"),
        (request('"params":{"a":-9223372036854775809}'), b"7"),
        (request(f'"params":{{"a":{"1" * 5000}}}'), b"7"),
        (request('"params":{"a":1e999}'), b"7"),
        (request(id_="1" * 30), b"1" * 30),
    ],
)
def test_json_that_we_refuse_is_an_invalid_request_with_the_id_it_had(frame: bytes, id_: bytes) -> None:
    assert refused(frame) == (INVALID_REQUEST, id_)


@pytest.mark.parametrize(
    "params",
    [
        '{"a":9223372036854775807,"b":-9223372036854775808}',
        '{"a":"99999999999999999999999999"}',
        '{"a":0.1234567890123456789012345678}',
        '{"a": 1.2345678901234567890123e10, "b": 1234567890123456789012.5}',
        '{"a": 1e21}',
        '{"a":"{\\"x\\":1,\\"x\\":2}", "b":"[[[[{{{{"}',
        '{"a" : [1, {"b" : "c:d"}]}',
        '{"a":"\\u4e2d\\/\\n\\u0000"}',
        '{"a":{"a":{"a":1}}}',
        nested(DEPTH_LIMIT - 2),
        f'{{"a":[{",".join(["{}"] * 200)}]}}',
        f'{{"a":"{"[" * 200}"}}',
    ],
)
def test_unusual_but_correct_json_is_accepted(params: str) -> None:
    call = only(request(f'"params":{params}'))
    assert isinstance(call, Call)
    assert call.params == json.loads(params)


@pytest.mark.parametrize(
    "id_", ["1", "-1", "0", "1.5", "1.0", "1e2", '"a"', '"\\u4e2d"', '"中"', '"a\\/b"', "null", '""']
)
def test_an_id_is_echoed_exactly(id_: str) -> None:
    call = only(request(id_=id_))
    assert isinstance(call, Call)
    assert call.id == id_.encode()
    assert messages.encode_result(call.id, None) == b'{"jsonrpc":"2.0","id":%b,"result":null}' % id_.encode()
    assert messages.same_id(call.id, json.loads(id_))


def test_a_request_without_id_is_a_notification_and_one_with_null_is_not() -> None:
    assert only(b'{"jsonrpc":"2.0","method":"m"}') == Call("m", None, None)
    assert only(b'{"jsonrpc":"2.0","method":"m","id":null,"params":null}') == Call("m", None, b"null")


@pytest.mark.parametrize(
    "rest", ['"result":1', '"error":{"code":1,"message":"x"}', '"result":null,"id":null', '"error":null']
)
def test_a_response_without_a_waiting_call_is_ignored(rest: str) -> None:
    assert decode_frame(f'{{"jsonrpc":"2.0",{rest}}}'.encode()).items == []


def test_a_response_with_a_string_as_its_id_may_answer_a_request_of_ours() -> None:
    answered = decode_frame(b'{"jsonrpc":"2.0","id":"sidecar-1","result":{"a":1}}')
    assert (answered.items, answered.responses) == ([], (ClientResponse("sidecar-1", {"a": 1}, False),))
    failed = decode_frame(b'[{"jsonrpc":"2.0","id":"sidecar-1","error":{"code":1,"message":"x"}}]')
    assert (failed.items, failed.responses) == ([], (ClientResponse("sidecar-1", None, True),))


def test_a_batch_holds_calls_and_refusals_in_order() -> None:
    incoming = decode_frame(
        b'[{"jsonrpc":"2.0", "id":1e0,"method":"m"}, 5, '
        b'{"jsonrpc":"2.0","id":1,"result":1}, {"jsonrpc":"2.0","method":"n"}]'
    )
    assert incoming.batch
    first, second, third = incoming.items
    assert first == Call("m", None, b"1e0")
    assert isinstance(second, RejectedMessage)
    assert third == Call("n", None, None)


def test_a_batch_above_the_bound_is_refused_as_a_whole() -> None:
    assert refused(b"[" + b",".join([b"1"] * 1001) + b"]") == (INVALID_REQUEST, b"null")


def test_faults_of_framing_have_their_codes() -> None:
    assert messages.reject_framing_error(FramingError.TOO_LARGE).error.code == INVALID_REQUEST
    assert messages.reject_framing_error(FramingError.BAD_HEADER).error.code == PARSE_ERROR


@given(JSON, st.booleans(), st.booleans())
def test_every_correct_request_is_read_as_it_was_meant(value: Any, ascii_only: bool, spaces: bool) -> None:
    separators = (", ", ": ") if spaces else (",", ":")
    wire = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"v": value}},
        ensure_ascii=ascii_only,
        separators=separators,
    )
    call = only(wire.encode("utf-8", "surrogatepass"))
    assert isinstance(call, Call)
    assert call.params == {"v": value}


@given(st.binary(max_size=200))
def test_any_bytes_are_answered_or_ignored(frame: bytes) -> None:
    for item in decode_frame(frame).items:
        if isinstance(item, RejectedMessage):
            assert msgspec.json.decode(messages.encode_error(item.id, item.error))["error"]["code"] < 0


def test_the_strict_reading_stays_linear_for_hostile_shapes() -> None:
    for small, large in zip(hostile(256 * 1024), hostile(4 * 1024 * 1024), strict=True):
        # linear: 16 times, quadratic: 256; far enough apart for a machine that does other things as well
        assert cost(large) < 80 * max(cost(small), 0.002)


def hostile(size: int) -> list[bytes]:
    return [
        b"[" * size,
        b"[" + b"[]," * (size // 3) + b"[]]",
        b'"' + b"\\n" * (size // 2) + b'"',
        b'{"a":"' + b"\\" * size,
        b"[" + b"1" * size + b"]",
        b'["' + b'","' * (size // 3) + b'"]',
        (b"[" * 64 + b"]" * 64 + b",") * (size // 129),
    ]


def cost(shape: bytes) -> float:
    """Seconds of this thread's own work, without the collector: it walks what other tests left behind as well."""
    gc.disable()
    try:
        started = time.thread_time()
        decode_frame(shape)
        return time.thread_time() - started
    finally:
        gc.enable()
