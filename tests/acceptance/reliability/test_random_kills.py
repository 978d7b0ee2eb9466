"""kill -9 at random moments of a stream of updates. `KILL_ROUNDS=50` is the full proof; a test run makes a few rounds.

A round is one fresh home, one seed, one kill. Each is a test of its own, so that a failing seed has a name and the
rounds share the cores.
"""

import contextlib
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.environment import exchanges, integrity, question_counts
from tests.proof import first_in_test
from tests.sidecar import Home, Sidecar

ROUNDS: Final = int(os.environ.get("KILL_ROUNDS", "8"))
UPDATES: Final = 2000  # more than any round reaches
WAKING: Final = (0.15, 0.8)  # seconds after a start: from the first import to the first answers
LIFE: Final = 0.9  # seconds after the first answer: some renderings of the file fall into it
IN_FLIGHT: Final = 12


@pytest.mark.parametrize("seed", first_in_test(range(ROUNDS), 3))
def test_killed_anywhere_in_a_stream_everything_acknowledged_is_there_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    home = Home(tmp_path / "a")
    if chance.random() < 0.5:  # half of the rounds begin with a memory that is there already
        with Sidecar(home) as earlier:
            earlier.update("早先的话")
    acknowledged = kill_during_updates(home, chance)
    if chance.random() < 0.3:  # some die a second time, during startup
        waking = Sidecar(home)
        time.sleep(chance.uniform(*WAKING))  # the moment of the kill, not a wait for an effect
        waking.kill()
    with Sidecar(home) as again:
        survived = [event["event_id"] for event in exchanges(again)]
        assert max(Counter(survived).values(), default=0) <= 1
        assert set(acknowledged.values()) <= set(survived)
        assert again.call("events/verify") == {"ok": True, "events": len(survived), "problems": []}
        counts = question_counts(again.load()["document"])
        assert all(counts[key] == 1 for key in acknowledged)
        assert max(counts.values(), default=0) <= 1
        sent_again = {key: again.update(key, "好", idempotencyKey=key)["eventId"] for key in acknowledged}
        assert sent_again == acknowledged
        assert len(exchanges(again)) == len(survived)
    if survived:  # without an update there is no file
        assert question_counts(home.file.read_text("utf-8")) == counts
    assert home.json("events", "verify")["ok"] is True
    assert integrity(home) == "ok"


def kill_during_updates(home: Home, chance: random.Random) -> dict[str, str]:
    """The event id of every update that was acknowledged before the kill, by its text."""
    sidecar = Sidecar(home)
    sent: dict[str, int] = {}
    acknowledged: dict[str, str] = {}
    early = chance.random() < 0.2  # some rounds die before they have answered at all, or just then
    killer = threading.Timer(chance.uniform(*(WAKING if early else (0, LIFE))), sidecar.kill)
    if early:
        killer.start()
    window = chance.randint(1, IN_FLIGHT)
    try:
        with contextlib.suppress(OSError, TimeoutError):
            for number in range(UPDATES):
                key = f"问题 {number}"
                sent[key] = sidecar.send("memory/update", userMessage=key, aiResponse="好", idempotencyKey=key)
                if number >= window:
                    oldest = f"问题 {number - window}"
                    acknowledged[oldest] = answer_of(sidecar, sent[oldest])
                    if not killer.ident:
                        killer.start()
    finally:
        if not killer.ident:
            killer.start()
        killer.join()
    sidecar._reader.join()
    for key in sent.keys() - acknowledged.keys():  # answers that were on the way when the kill came count as well
        with contextlib.suppress(TimeoutError):
            acknowledged[key] = sidecar.wait_for_response(sent[key], 0)["eventId"]
    print(f"\n{len(sent)} sent, {len(acknowledged)} acknowledged, {window} in flight")
    return acknowledged


def answer_of(sidecar: Sidecar, number: int) -> str:
    """The event id; TimeoutError as soon as it cannot come any more."""
    while True:
        try:
            return str(sidecar.wait_for_response(number, 0.05)["eventId"])
        except TimeoutError:
            if not sidecar._reader.is_alive():
                raise
