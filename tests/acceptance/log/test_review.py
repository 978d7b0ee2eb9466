"""`review/list` and `review/answer`: what waits for the user, in one list with pages."""

from pathlib import Path

import pytest

from tests.sidecar import CallFailed, Home, Sidecar


def propose(sidecar: Sidecar, count: int) -> list[str]:
    """Facts that a program proposes, which wait."""
    names = [f"项目{number}用 PostgreSQL {number + 10}" for number in range(count)]
    for name in names:
        sidecar.call("events/append", event={"type": "memory_fact", "payload": {"content": name}})
    return names


def test_what_waits_is_one_list_with_pages_and_each_item_says_its_answers(tmp_path: Path) -> None:
    with Sidecar(Home(tmp_path / "a")) as sidecar:
        assert sidecar.call("review/list") == {"items": [], "counts": {}, "nextCursor": None}
        names = propose(sidecar, 5)
        record_id = sidecar.call("daily/add", summary={"topic": "买菜"})["record"]["id"]
        sidecar.call("daily/mark", id=record_id, mark="outdated")
        first = sidecar.call("review/list", limit=4)
        assert first["counts"] == {"fact": 5, "daily": 1}
        sidecar.call("review/answer", itemId=first["items"][3]["itemId"], answer="reject")  # also the page's last item
        second = sidecar.call("review/list", limit=4, cursor=first["nextCursor"])
        assert second["nextCursor"] is None
        items = [*first["items"], *second["items"]]
        assert [item["text"] for item in items[:5]] == names
        assert {(item["kind"], item["reason"], *item["answers"]) for item in items} == {
            ("fact", "candidate", "confirm", "reject", "edit"),
            ("daily", "outdated", "remove", "keep"),
        }
        assert [item["kind"] for item in sidecar.call("review/list", kinds=["daily"])["items"]] == ["daily"]


def test_a_likely_fact_that_a_newer_sentence_questions_can_be_rejected(tmp_path: Path) -> None:
    with Sidecar(Home(tmp_path / "a")) as sidecar:
        sidecar.update("可能每周三晚上去上陶艺课", "好")
        sidecar.update("陶艺课改到周五了", "好")
        older = next(one for one in sidecar.call("review/list")["items"] if one["text"].startswith("可能"))
        assert (older["reason"], older["answers"]) == ("questioned", ["confirm", "reject", "edit"])
        assert sidecar.call("understanding/review")["counts"]["questioned"] == 0, "no active fact is in question"
        sidecar.call("review/answer", itemId=older["itemId"], answer="reject")
        assert sidecar.call("review/list")["counts"] == {"fact": 1}


def test_an_answer_is_carried_out_and_a_wrong_one_says_what_is_right(tmp_path: Path) -> None:
    with Sidecar(Home(tmp_path / "a")) as sidecar:
        propose(sidecar, 3)
        one, two, three = (item["itemId"] for item in sidecar.call("review/list")["items"])
        record_id = sidecar.call("daily/add", summary={"topic": "买菜"})["record"]["id"]
        sidecar.call("daily/mark", id=record_id, mark="outdated")
        done = sidecar.call("review/answer", itemId=one, answer="confirm")
        assert done == {"itemId": one, "answer": "confirm", "left": 3}
        sidecar.call("review/answer", itemId=two, answer="edit", text="项目二用 SQLite")
        statements = {fact["statement"] for fact in sidecar.call("understanding/facts")["facts"]}
        assert statements == {"项目0用 PostgreSQL 10", "项目二用 SQLite"}
        assert sidecar.call("review/answer", itemId=f"daily:{record_id}", answer="keep")["left"] == 1
        assert "outdated" not in sidecar.call("daily/list")["records"][0]["marks"]
        for given, hint in (
            ({"itemId": three, "answer": "accept"}, "confirm, reject, edit"),
            ({"itemId": one, "answer": "confirm"}, "review/list"),
            ({"itemId": three, "answer": "edit"}, "new words"),
        ):
            with pytest.raises(CallFailed) as failed:
                sidecar.call("review/answer", **given)
            assert failed.value.code == -32602
            assert hint in failed.value.data["hint"]
        with pytest.raises(CallFailed, match="cursor is expired") as failed:
            sidecar.call("review/list", cursor="no-cursor")
        assert (failed.value.code, failed.value.data["hint"]) == (-32602, "Begin again without a cursor.")
        with pytest.raises(CallFailed) as failed:
            sidecar.call("review/list", kinds=["facts"])
        assert "fact" in failed.value.data["hint"]
