"""The document as a whole, from outside: history, restore, save and the answer to a mass delete, by RPC and CLI."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.rpc.endpoint_client import SOCKET_NAME
from tests.acceptance.environment import events_of, wait_for_lines, wait_until_reconciled
from tests.proof import first_in_test
from tests.sidecar import CallFailed, Home, Sidecar, wait_until

HABITS = "### 工作习惯\n"
LINES = "".join(f"- 第 {number} 条\n" for number in range(12))

Answer = Callable[[str], None]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


@pytest.fixture
def sidecar(home: Home) -> Iterator[Sidecar]:
    """A sidecar whose file has one exchange and twelve typed lines."""
    with Sidecar(home) as sidecar:
        sidecar.update("旧的")
        wait_for_lines(home, "用户问：旧的")
        edit(home, HABITS, HABITS + LINES)
        wait_until_reconciled(sidecar)
        yield sidecar


def edit(home: Home, old: str, new: str) -> None:
    text = home.file.read_text("utf-8")
    assert old in text
    home.file.write_text(text.replace(old, new, 1), "utf-8")


def lose(home: Home, how: str) -> None:
    if how == "vanished":
        home.file.unlink()
    elif how == "emptied":
        home.file.write_bytes(b"")
    else:
        edit(home, LINES, "- 第 0 条\n")


def warnings(sidecar: Sidecar) -> list[str]:
    wait_until_reconciled(sidecar)
    found: list[str] = sidecar.call("sync/status")["document"]["warnings"]
    return found


def kinds(operations: list[dict[str, Any]]) -> set[str]:
    return {operation["type"] for operation in operations}


class TestByRpc:
    def test_restore_brings_a_version_back_as_events_and_loses_none(self, home: Home, sidecar: Sidecar) -> None:
        wanted = sidecar.call("memory/history", limit=1)["versions"][0]
        assert wanted["cause"] == "hand"
        assert wanted["sha256"] == hashlib.sha256(home.file.read_bytes()).hexdigest()
        edit(home, "- 第 3 条\n", "")
        wait_until_reconciled(sidecar)
        removed = sidecar.call("memory/history")["versions"][0]["sha256"]
        edited = sidecar.call("memory/restore", sha256=wanted["sha256"])
        assert kinds(edited["operations"]) == {"entry_added"}
        assert "- 第 3 条\n" in home.file.read_text("utf-8")
        (told,) = events_of(sidecar, "document_restored")
        assert told["payload"] == {"sha256": wanted["sha256"], "operations": 1}
        versions = sidecar.call("memory/history")["versions"]
        assert versions[0]["sha256"] == edited["sha256"]
        assert removed in [version["sha256"] for version in versions]

    def test_save_over_what_came_in_between_keeps_both(self, home: Home, sidecar: Sidecar) -> None:
        sidecar.update("还没写的")
        loaded = sidecar.load(waitMs=0)  # the update may or may not be in a version by now
        sidecar.update("后来的")
        document = loaded["document"].replace("- 第 3 条\n", "").replace("- 第 4 条", "- 第 4 条，改过")
        edited = sidecar.call("memory/save", document=document, baseSha256=loaded["documentSha256"])
        assert kinds(edited["operations"]) == {"entry_edited", "entry_removed"}
        text = sidecar.load(waitMs=0)["document"]
        assert (text.count("还没写的"), text.count("后来的")) == (1, 1)
        assert "- 第 4 条，改过\n" in text
        assert "- 第 3 条\n" not in text
        wait_for_lines(home, "还没写的", "后来的", "- 第 4 条，改过")

    def test_a_save_that_removes_almost_everything_must_be_confirmed(self, home: Home, sidecar: Sidecar) -> None:
        loaded = sidecar.load(waitMs=0)
        save = {"document": loaded["document"].replace(LINES, ""), "baseSha256": loaded["documentSha256"]}
        with pytest.raises(CallFailed) as refused:
            sidecar.call("memory/save", **save)
        assert (refused.value.code, refused.value.data["field"]) == (-32602, "document")
        assert LINES in home.file.read_text("utf-8")
        assert len(sidecar.call("memory/save", **save, allowLoss=True)["operations"]) == 12

    def test_a_bad_parameter_is_named(self, sidecar: Sidecar) -> None:
        bad: list[tuple[str, dict[str, Any], str]] = [
            ("memory/restore", {"sha256": "0" * 64}, "sha256"),
            ("memory/restore", {"sha256": "short"}, "sha256"),
            ("memory/history", {"limit": 0}, "limit"),
            ("memory/save", {}, "document"),
            ("memory/save", {"document": "a", "baseSha256": "Z"}, "baseSha256"),
            ("memory/resolve", {"answer": "perhaps"}, "answer"),
        ]
        for method, params, field in bad:
            with pytest.raises(CallFailed) as refused:
                sidecar.call(method, **params)
            assert (refused.value.code, refused.value.data["field"]) == (-32602, field)


LOSSES = [(how, interface) for how in ("emptied", "shrunk", "vanished") for interface in ("cli", "rpc")]
IN_TEST = [("emptied", "rpc"), ("shrunk", "cli"), ("vanished", "rpc")]


@pytest.mark.parametrize("loss", first_in_test(sorted(LOSSES, key=IN_TEST.__contains__, reverse=True), len(IN_TEST)))
class TestAMassDelete:
    @pytest.fixture
    def answer(self, home: Home, sidecar: Sidecar, loss: tuple[str, str]) -> Answer:
        """Lose the lines, wait for the warning, and answer it through the interface of this test."""
        how, interface = loss
        lose(home, how)
        warning = "document_missing" if how == "vanished" else "suspicious_mass_delete"
        wait_until(lambda: warnings(sidecar) == [warning])  # an emptied file may be one that is being written

        def answering(word: str) -> None:
            if interface == "rpc":
                sidecar.call("memory/resolve", answer=word)
                assert warnings(sidecar) == []
            else:
                sidecar.stop()
                home.json("resolve", word)
                assert home.json("status")["document"]["warnings"] == []

        return answering

    def test_restored_nothing_is_missing(self, home: Home, answer: Answer) -> None:
        answer("restore")
        wait_for_lines(home, LINES, "用户问：旧的")
        assert removals(home) == []

    def test_accepted_the_lines_are_gone_and_in_the_history(self, home: Home, answer: Answer) -> None:
        answer("accept")
        assert len(removals(home)) >= 11
        assert "- 第 3 条" not in home.json("load")["document"]
        counts = [version["entries"] for version in home.json("history")["versions"]]
        assert max(counts) >= 12


class TestByCommandLine:
    def test_history_and_restore(self, home: Home, sidecar: Sidecar) -> None:
        sidecar.stop()
        edit(home, "- 第 3 条\n", "")
        newest, before, *_ = home.json("history", "--limit", "2")["versions"]
        assert (newest["cause"], newest["entries"]) == ("hand", before["entries"] - 1)
        assert kinds(home.json("restore", before["sha256"])["operations"]) == {"entry_added"}
        assert "- 第 3 条\n" in home.file.read_text("utf-8")
        shown = home.run("history").stdout
        assert newest["sha256"] in shown
        assert "restored" in shown

    def test_an_unknown_version_exits_2_with_a_hint(self, home: Home, sidecar: Sidecar) -> None:
        sidecar.stop()
        refused = home.run("restore", "0" * 64, check=False)
        assert refused.returncode == 2
        assert "提示：`xiaobai-memory history`" in refused.stderr

    def test_a_running_sidecar_restores_a_version_and_takes_an_answer(self, home: Home, sidecar: Sidecar) -> None:
        sidecar.call("sync/status")  # only an open sidecar answers it, and its endpoint is there before
        edit(home, "- 第 3 条\n", "")
        wait_until(lambda: "第 3 条" not in sidecar.load()["document"])
        _, before, *_ = home.json("history", "--limit", "2")["versions"]
        assert home.run("restore", before["sha256"][:8]).stdout == "新增 1，修改 0，删除 0\n"
        assert "- 第 3 条\n" in home.file.read_text("utf-8")
        home.file.write_bytes(b"")
        wait_until(lambda: warnings(sidecar) == ["suspicious_mass_delete"])
        assert home.run("resolve", "restore").stdout == "已恢复\n"
        assert "- 第 3 条\n" in home.file.read_text("utf-8")
        assert "没有等待答复的问题" in home.run("resolve", "restore").stdout
        refused = home.run("--json", "restore", "0" * 64, check=False)
        assert (refused.returncode, "history" in refused.stderr) == (2, True)

    def test_only_a_running_sidecar_may_write_if_it_cannot_be_asked(self, home: Home, sidecar: Sidecar) -> None:
        sidecar.call("sync/status")
        (home.data / SOCKET_NAME).unlink()
        for arguments in (("restore", "0" * 64), ("resolve", "accept")):
            refused = home.run("--json", *arguments, check=False)
            assert refused.returncode == 1
            assert "already_running" in refused.stderr


def removals(home: Home) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = home.json("events", "read", '{"types": ["entry_removed"]}')["events"]
    return events
