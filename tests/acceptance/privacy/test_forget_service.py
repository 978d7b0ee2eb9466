"""`memory/forget`: what belongs together is shown, hidden at once, kept on this device, and erased unless undone."""

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.environment import Network, cloud_settings, unique_text, wait_until_synced
from tests.acceptance.log.test_lesson_privacy import texts_in
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar, wait_until

LONG = 300  # seconds to undo: longer than any test
STATEMENT, WORD = "我对花生过敏", "花生"
VIEWS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory/load", {}),
    ("memory/systemPrompt", {}),
    ("recall/search", {"query": WORD}),
    ("recall/context", {"query": "我对什么过敏？"}),
    ("understanding/facts", {}),
    ("daily/list", {}),
    ("events/read", {}),
    ("events/tail", {}),
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def tell(sidecar: Sidecar) -> str:
    """Say something that becomes an exchange, a fact, a line and a daily record; the id of the fact."""
    sidecar.call("memory/update", userMessage=STATEMENT, aiResponse="记住了，以后不推荐花生。", sessionId="s1")
    sidecar.call("memory/update", userMessage="我叫李雷", aiResponse="你好，李雷。", sessionId="s2")
    sidecar.call("daily/record", sessionId="s1", force=True)
    (fact,) = [one for one in sidecar.call("understanding/facts")["facts"] if WORD in one["statement"]]
    return str(fact["factId"])


def views_with_it(sidecar: Sidecar) -> set[str]:
    """The views that show what was said."""
    return {method for method, params in VIEWS if WORD in _without_query(sidecar.call(method, **params))}


def _without_query(answer: dict[str, Any]) -> str:
    return str({name: value for name, value in answer.items() if name != "query"})


def is_in_file(home: Home) -> bool:
    return home.file.exists() and WORD in home.file.read_text("utf-8")


def test_a_fact_is_shown_with_all_that_belongs_to_it_hidden_everywhere_and_comes_back_when_undone(home: Home) -> None:
    with Sidecar(home) as sidecar:
        fact_id = tell(sidecar)
        wait_until(lambda: is_in_file(home))
        before = views_with_it(sidecar)
        assert before == {method for method, _ in VIEWS}
        shown = sidecar.call("memory/forget", factId=fact_id, preview=True)
        assert {"memory_fact", "exchange_recorded", "session_recorded"} <= shown["counts"].keys()
        assert shown["requestId"] is shown["willBeErasedAt"] is None
        assert views_with_it(sidecar) == before
        asked = sidecar.call("memory/forget", factId=fact_id, undoSeconds=LONG)
        assert (asked["found"], asked["counts"]) == (shown["found"], shown["counts"])
        assert views_with_it(sidecar) == set()
        assert "李雷" in str(sidecar.load())
        (waiting,) = sidecar.call("sync/status")["forgetting"]
        assert (waiting["requestId"], waiting["willBeErasedAt"]) == (asked["requestId"], asked["willBeErasedAt"])
        assert sidecar.call("memory/forget", query=WORD, preview=True)["found"] == 0
        undone = sidecar.call("memory/undo", requestId=asked["requestId"])
        assert undone == {"requestId": asked["requestId"], "events": asked["found"]}
        assert views_with_it(sidecar) == before
        assert is_in_file(home)
        assert sidecar.call("sync/status")["forgetting"] == []
        with pytest.raises(CallFailed, match="no such request waits"):
            sidecar.call("memory/undo", requestId=asked["requestId"])
        assert sidecar.call("events/verify")["ok"] is True


def test_when_its_time_is_over_it_is_erased(home: Home) -> None:
    with Sidecar(home) as sidecar:
        fact_id = tell(sidecar)
        wait_until(lambda: is_in_file(home))
        sidecar.call("memory/forget", factId=fact_id, undoSeconds=1)
        wait_until(lambda: not sidecar.call("sync/status")["forgetting"])
        wait_until(lambda: not is_in_file(home))
        assert views_with_it(sidecar) == set()
        assert WORD not in str(sidecar.call("memory/history", limit=100))
        with pytest.raises(CallFailed, match="nothing waits to be forgotten"):
            sidecar.call("memory/undo")


def test_after_a_kill_the_next_process_hides_and_erases_it(home: Home) -> None:
    with Sidecar(home) as sidecar:
        fact_id = tell(sidecar)
        wait_until(lambda: is_in_file(home))
        sidecar.call("memory/forget", factId=fact_id, undoSeconds=3)
        sidecar.kill()
    assert WORD not in home.run("load").stdout
    with Sidecar(home) as sidecar:
        assert WORD not in str(sidecar.load())
        wait_until(lambda: not sidecar.call("sync/status")["forgetting"])
        wait_until(lambda: not is_in_file(home))
        assert views_with_it(sidecar) == set()


def test_words_need_the_token_of_a_preview_of_the_same(home: Home) -> None:
    with Sidecar(home) as sidecar:
        tell(sidecar)
        with pytest.raises(CallFailed, match="a query needs a token") as failed:
            sidecar.call("memory/forget", query=WORD)
        assert failed.value.code == -32602
        assert "preview" in failed.value.data["hint"]
        shown = sidecar.call("memory/forget", query=WORD, preview=True)
        with pytest.raises(CallFailed, match="has changed"):
            sidecar.call("memory/forget", query="李雷", token=shown["token"])
        sidecar.call("memory/update", userMessage="花生酱很好吃吗？", aiResponse="很多人喜欢。")
        asked = sidecar.call("memory/forget", query=WORD, token=shown["token"], undoSeconds=LONG)
        assert asked["found"] >= shown["found"]  # the line of the fact may have been written since
        assert "花生酱" in str(sidecar.call("events/tail"))
        assert STATEMENT not in str(sidecar.call("events/read"))
        sidecar.call("memory/undo")
        first = sidecar.call("events/read", types=["exchange_recorded"], limit=1)["events"][0]["event_id"]
        sidecar.call("events/forget", eventIds=[first])
        with pytest.raises(CallFailed, match="has changed"):
            sidecar.call("memory/forget", query=WORD, token=shown["token"])


def test_one_of_three_says_what_is_meant(home: Home) -> None:
    with Sidecar(home) as sidecar:
        for given in ({}, {"factId": "evt_x", "query": WORD}):
            with pytest.raises(CallFailed, match="give one of factId, eventIds and query"):
                sidecar.call("memory/forget", **given)
        with pytest.raises(CallFailed, match="no event of this device's log has the id evt_unknown"):
            sidecar.call("memory/forget", eventIds=["evt_unknown"])
        with pytest.raises(CallFailed, match="query holds no words"):
            sidecar.call("memory/forget", query="  ", preview=True)


def test_more_than_2000_events_are_refused_with_their_number(home: Home) -> None:
    with Sidecar(home) as sidecar:
        for start in range(0, 2_001, 667):
            events = [
                {"type": "message", "payload": {"role": "user", "content": f"{WORD} {number}"}}
                for number in range(start, start + 667)
            ]
            sidecar.call("events/appendBatch", events=events)
        names = [event["event_id"] for event in read_all(sidecar)]
        assert len(names) == 2_001
        with pytest.raises(CallFailed, match="2000"):
            sidecar.call("memory/forget", eventIds=names, preview=True)


def read_all(sidecar: Sidecar) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = 0
    while page := sidecar.call("events/read", types=["message"], after=after)["events"]:
        found += page
        after = sidecar.call("events/read", types=["message"], after=after)["nextOffset"]
    return found


def test_nothing_of_it_is_sent_while_it_can_be_undone(tmp_path: Path, local_cloud: Cloud, user: User) -> None:
    secret, later = unique_text("忘掉"), unique_text("以后")
    with Network(local_cloud) as network:
        home = Home(tmp_path / "a", **cloud_settings(local_cloud, network.url))
        with Sidecar(home) as sidecar:
            sidecar.log_in(user.email, user.password)
            wait_until_synced(sidecar)
            network.disconnect()
            event_id = sidecar.update(secret)["eventId"]
            asked = sidecar.call("memory/forget", eventIds=[event_id], undoSeconds=LONG)
            sidecar.update(later)
            network.reconnect()
            sidecar.call("sync/now")
            sidecar.kill()
        with Sidecar(home) as sidecar:
            sidecar.call("sync/now")
            assert secret not in texts_in(network.received)
            sidecar.call("memory/undo", requestId=asked["requestId"])
            sidecar.call("sync/now")
            wait_until_synced(sidecar)
            assert secret in texts_in(network.received)
            network.clear_requests()
            sidecar.call("memory/forget", eventIds=[event_id], undoSeconds=0)
            wait_until_synced(sidecar)
            assert secret not in texts_in(network.received)
            assert event_id in texts_in(network.received)


def test_a_command_beside_a_sidecar_can_be_undone_and_one_without_erases_at_once(home: Home) -> None:
    home.settings |= {"PRIVACY__UNDO_SECONDS": "300", "DOCUMENT__LANGUAGE": "en"}
    with Sidecar(home) as sidecar:
        fact_id = tell(sidecar)
        assert "in all that belong together" in home.run("forget", "--fact", fact_id).stdout
        assert WORD in str(sidecar.load())
        assert "will be erased at" in home.run("forget", "--query", WORD, "--yes").stdout
        assert WORD not in str(sidecar.load())
        assert "shown again" in home.run("forget", "--undo").stdout
        assert WORD in str(sidecar.load())
    done = home.json("forget", "--fact", fact_id, "--yes")
    assert done["requestId"] is None
    assert done["found"] > 2
    assert WORD not in home.run("load").stdout
    assert not is_in_file(home)
