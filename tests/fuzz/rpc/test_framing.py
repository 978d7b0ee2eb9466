"""A sample of the hostile frames, every cut there is, and what fuzzing has found; `make fuzz` has them all."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.methods.registry import METHOD_TABLE
from bridge.rpc import messages
from bridge.rpc.framing import FrameDecoder, Framing, encode_frame
from bridge.rpc.messages import RejectedMessage
from bridge.rpc.process_guard import WatchedProcess
from tests.fuzz.rpc.calls import METHODS, VALID, random_frame
from tests.fuzz.rpc.expected_response import INVALID_REQUEST, PARSE_ERROR, expected_response
from tests.fuzz.rpc.framing import FRAMES, PROCESS, in_memory
from tests.proof import examples, first_in_test


async def test_every_hostile_frame_gets_the_right_answer_and_the_next_call_is_answered(tmp_path: Path) -> None:
    await FRAMES.probe(tmp_path)


async def test_an_attack_leaves_the_home_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, attacked = tmp_path / "home", tmp_path / "attacked"
    home.mkdir()
    attacked.mkdir()
    monkeypatch.setenv("HOME", str(home))
    async with in_memory(attacked) as line:
        await line.ask("daily/add", summary={"topic": "我喜欢火锅"})
    assert list(attacked.rglob("daily/*.md"))
    assert list(home.iterdir()) == []


async def test_the_real_program_withstands_them_in_both_framings_and_says_nothing_but_protocol(tmp_path: Path) -> None:
    await PROCESS.probe(tmp_path)


def test_every_method_is_attacked_and_with_examples_that_pass_its_types() -> None:
    assert set(METHODS) == set(METHOD_TABLE) == set(VALID)
    for method, known in VALID.items():
        assert known
        for example in known:
            METHOD_TABLE[method].decode_params(dict(example))


@given(st.randoms(use_true_random=False))
@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_what_is_refused_as_a_frame_is_what_another_parser_refuses(chance: random.Random) -> None:
    attacking = random_frame(chance)
    refusals = [item for item in messages.decode_frame(attacking).items if isinstance(item, RejectedMessage)]
    codes = {refusal.error.code for refusal in refusals}
    wanted = expected_response(attacking)
    assert codes <= wanted.codes | ({INVALID_REQUEST} if wanted.batch else set()), attacking[:300]
    if wanted.codes and wanted.codes <= {PARSE_ERROR, INVALID_REQUEST}:
        assert codes, attacking[:300]
    for refusal in refusals:
        msgspec.json.decode(messages.encode_error(refusal.id, refusal.error))


@pytest.mark.parametrize("framing", first_in_test(Framing))
def test_three_calls_are_read_alike_wherever_the_bytes_are_cut_in_two_places(framing: Framing) -> None:
    calls = [
        json.dumps({"id": number, "method": "记忆\U0001f642"}, ensure_ascii=False).encode() for number in (1, 22, 333)
    ]
    wire = b"".join(encode_frame(call, framing) for call in calls)
    for first, second in itertools.combinations(range(len(wire) + 1), 2):
        frames = FrameDecoder()
        found = [cut for piece in (wire[:first], wire[first:second], wire[second:]) for cut in frames.feed(piece)]
        assert found + frames.finish() == calls


@pytest.mark.parametrize("id_", ["1e400", '"\\ud800"', "[1]", "-1e999"])
def test_an_unreadable_id_is_not_echoed(id_: str) -> None:
    [refusal] = messages.decode_frame(f'{{"jsonrpc":"2.0","id":{id_},"method":"x"}}'.encode()).items
    assert isinstance(refusal, RejectedMessage)
    assert refusal.id == b"null"


@pytest.mark.parametrize("pid", [2**31, 2**63 - 1])
def test_a_parent_with_a_number_that_no_process_can_have_is_not_watched(pid: int) -> None:
    assert WatchedProcess(pid).has_ended()


async def test_names_with_nul_are_stored_without_it_so_that_the_server_takes_them(tmp_path: Path) -> None:
    async with in_memory(tmp_path) as line:
        given: dict[str, Any] = {"userMessage": "问", "aiResponse": "答", "sessionId": "a\0b", "projectPath": "/家\0"}
        await line.ask("memory/update", **given)
        await line.ask("memory/update", **{**given, "sessionId": "\0", "projectPath": "\0"})
        await line.ask("sync/now")
        assert (await line.ask("sync/quarantine"))["events"] == []
        first, second = (await line.ask("events/read", types=["exchange_recorded"]))["events"]
        assert (first["session_id"], first["project_path"]) == ("ab", "/家")
        assert second["project_id"] == "proj_global"
