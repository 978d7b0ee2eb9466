"""`forget` erases text from the log, the file, its versions, the server and the other devices."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.environment import (
    ServerRows,
    cloud_settings,
    exchanges,
    files_containing,
    unique_text,
    wait_for_lines,
    wait_until_reconciled,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar, wait_until


@pytest.fixture
def home(tmp_path: Path, local_cloud: Cloud) -> Home:
    return Home(tmp_path / "a", **cloud_settings(local_cloud))


def open_logged_in(home: Home, user: User) -> Sidecar:
    sidecar = Sidecar(home)
    sidecar.log_in(user.email, user.password)
    wait_until_synced(sidecar)
    return sidecar


def file_text(home: Home) -> str:
    return home.file.read_text("utf-8") if home.file.exists() else ""


def versions(sidecar: Sidecar) -> list[str]:
    """What each version says when it is brought back."""
    found = []
    for version in sidecar.call("memory/history", limit=100)["versions"]:
        sidecar.call("memory/restore", sha256=version["sha256"])
        found.append(sidecar.load(scope="device")["document"])
    return found


def payload_of(sidecar: Sidecar, event_id: str) -> Any:
    (event,) = [event for event in sidecar.call("events/read")["events"] if event["event_id"] == event_id]
    return event["payload"]


def forget_exchange(sidecar: Sidecar, event_id: str) -> set[str]:
    """Forget an exchange: it goes, and with it only what has its id and more; the ends of those ids."""
    erased = sidecar.call("events/forget", eventIds=[event_id])
    assert all(payload_of(sidecar, name) == {} for name in erased["forgotten"])
    return ends_of(erased, event_id)


def ends_of(erased: Any, event_id: str) -> set[str]:
    """Behind the id of the exchange that was erased, the ends of the ids that went with it."""
    assert erased["keptFiles"] == []
    assert event_id in erased["forgotten"]
    ends = {name.removeprefix(event_id) for name in erased["forgotten"]} - {""}
    assert all(end == ".text" or end.startswith(".fact.") for end in ends)
    return ends


def test_what_was_said_is_gone_everywhere_on_this_device_and_the_rest_stays(home: Home) -> None:
    with Sidecar(home) as sidecar:
        kept, secret = unique_text("留下"), unique_text("忘掉")
        sidecar.update(kept)
        wait_until(lambda: kept in file_text(home))
        event_id = sidecar.update(secret, f"好的{secret}。" * 20)["eventId"]  # its whole text is an event too
        sidecar.update(unique_text("以后"))
        wait_until(lambda: secret in file_text(home))
        with pytest.raises(CallFailed, match="no event of this device's log has the id evt_unknown"):
            sidecar.call("events/forget", eventIds=[event_id, "evt_unknown"])
        assert secret in payload_of(sidecar, f"{event_id}.text")["answer"]
        assert ".text" in forget_exchange(sidecar, event_id)
        wait_until(lambda: secret not in file_text(home))
        assert secret not in str(sidecar.load())
        wait_for_lines(home, kept)
        assert secret not in str(sidecar.call("events/read"))
        assert sidecar.call("events/forget", eventIds=[event_id]) == {"forgotten": [], "keptFiles": []}
        assert sidecar.call("events/verify")["ok"] is True
        said = versions(sidecar)
        assert len(said) > 1
        assert not any(secret in text for text in said)
        assert any(kept in text for text in said)


def test_a_line_typed_by_hand_goes_with_the_event_it_became(home: Home) -> None:
    with Sidecar(home) as sidecar:
        word = unique_text("先说")
        sidecar.update(word)
        wait_until(lambda: word in file_text(home))
        secret = unique_text("手写")
        home.file.write_text(home.file.read_text("utf-8").replace("- （待补充）", f"- {secret}", 1), "utf-8")

        def typed() -> list[str]:
            added = sidecar.call("events/read", types=["entry_added"])["events"]
            return [event["event_id"] for event in added if secret in event["payload"]["text"]]

        (event_id,) = wait_until(typed)
        sidecar.call("events/forget", eventIds=[event_id])
        wait_until(lambda: secret not in file_text(home))
        assert not any(secret in text for text in versions(sidecar))


def test_a_line_that_was_removed_and_restored_goes_with_the_event_it_came_from(home: Home) -> None:
    with Sidecar(home) as sidecar:
        kept, secret, typed = unique_text("留下"), unique_text("忘掉"), unique_text("手写")
        sidecar.update(kept, "好的")
        event_id = sidecar.update(secret, "好的")["eventId"]
        wait_until(lambda: secret in file_text(home))
        home.file.write_text(file_text(home).replace("- （待补充）", f"- {typed}", 1), "utf-8")
        (added,) = wait_until(lambda: sidecar.call("events/read", types=["entry_added"])["events"])
        whole = sidecar.call("memory/history", limit=1)["versions"][0]["sha256"]
        for name in (kept, secret):
            removed = file_text(home).replace(f"- 用户问：{name}\n- AI 答：好的\n", "")
            home.file.write_text(removed.replace(f"- {typed}\n", ""), "utf-8")
            wait_until(lambda name=name: name not in sidecar.load()["document"])
        sidecar.call("memory/restore", sha256=whole)
        assert all(word in file_text(home) for word in (kept, secret, typed))
        sidecar.call("events/forget", eventIds=[event_id, added["event_id"]])
        wait_until(lambda: secret not in file_text(home))
        assert typed not in file_text(home)
        assert f"- 用户问：{kept}\n- AI 答：好的\n" in file_text(home)
        assert file_text(home).count("AI 答：") == 1
        assert not any(secret in text or typed in text for text in versions(sidecar))
        assert not any(secret in str(event) for event in sidecar.call("events/read")["events"])


def test_the_server_and_the_other_device_forget_it_too(
    tmp_path: Path, local_cloud: Cloud, user: User, home: Home
) -> None:
    server = ServerRows(local_cloud, user.user_id)
    secret = unique_text("忘掉")
    with (
        open_logged_in(home, user) as a,
        open_logged_in(Home(tmp_path / "b", device="device-b", **cloud_settings(local_cloud)), user) as b,
    ):
        event_id = a.update(secret)["eventId"]
        wait_until_synced(a)
        wait_for_lines(home, secret)  # files are written behind the answers: until then there is nothing to take away
        wait_until_synced(b)
        wait_until(lambda: secret in str(b.load()))
        forget_exchange(b, event_id)
        wait_until_synced(b)
        assert secret not in str(server.events)
        wait_until(lambda: secret not in file_text(home))
        wait_until(lambda: secret not in server.all_rows_as_text())
        for sidecar in (a, b):
            assert payload_of(sidecar, event_id) == {}
            assert secret not in str(sidecar.load())
            assert len(exchanges(sidecar)) == 1, "the blank row stays"
        assert "用户问" not in b.load()["content"], "nor does its empty shell"


def test_a_request_made_offline_waits_and_survives_a_kill(local_cloud: Cloud, user: User, home: Home) -> None:
    server = ServerRows(local_cloud, user.user_id)
    secret = unique_text("忘掉")
    with open_logged_in(home, user) as sidecar:
        event_id = sidecar.update(secret)["eventId"]
        wait_until_synced(sidecar)
    offline = Home(home.folder, **{**cloud_settings(local_cloud), "SUPABASE_URL": "http://127.0.0.1:9"})
    with Sidecar(offline) as sidecar:
        sidecar.call("events/forget", eventIds=[event_id])
        sidecar.kill()
    assert secret in server.all_rows_as_text()
    with Sidecar(home) as sidecar:
        wait_until_synced(sidecar)
        wait_until(lambda: secret not in file_text(home))
        wait_until(lambda: secret not in server.all_rows_as_text())
        assert payload_of(sidecar, event_id) == {}


def test_the_command_line_forgets_with_and_without_a_sidecar(home: Home) -> None:
    first, second = unique_text("一"), unique_text("二")
    with Sidecar(home) as sidecar:
        ids = [sidecar.update(word)["eventId"] for word in (first, second)]
        wait_until(lambda: second in file_text(home))
        ends_of(home.json("forget", ids[0]), ids[0])
        wait_until(lambda: first not in file_text(home))
        assert payload_of(sidecar, ids[0]) == {}
    assert home.json("search", second)["hits"]  # it is in the index and in the insights now
    home.run("insights", "report")
    assert f"已忘记 {ids[1]}" in home.run("forget", ids[1]).stdout
    assert files_naming(home, second) == []
    assert "没有可忘记的" in home.run("forget", ids[1]).stdout


def test_the_command_line_corrects_everything_that_a_new_rule_finds_without_a_sidecar(home: Home) -> None:
    secret = "BLUEWHALE-77"
    home.json("update", f"{secret} 很急", "好的")
    assert home.json("search", secret)["hits"]
    home.run("insights", "report")
    home.settings["REDACTION__PATTERNS"] = '["BLUEWHALE-[0-9]+"]'
    assert home.json("redact", "--log", "--apply")["applied"] is True
    assert files_naming(home, secret) == []


def test_an_update_that_is_sent_again_does_not_bring_it_back(home: Home) -> None:
    with Sidecar(home) as sidecar:
        secret = unique_text("忘掉")
        event_id = sidecar.update(secret, idempotencyKey="k1")["eventId"]
        sidecar.call("events/forget", eventIds=[event_id])
        assert sidecar.update(secret, idempotencyKey="k1")["eventId"] == event_id
        assert secret not in str(sidecar.load())
        wait_until_reconciled(sidecar)
        assert secret not in file_text(home)


def test_words_are_forgotten_in_log_document_daily_page_files_and_cloud_and_a_dry_run_forgets_nothing(
    local_cloud: Cloud, user: User, home: Home
) -> None:
    server = ServerRows(local_cloud, user.user_id)
    secret, kept = unique_text("忘掉"), unique_text("留下")
    home.settings["PRIVACY__STORE_MESSAGES"] = "true"
    with open_logged_in(home, user) as sidecar:
        sidecar.update(f"{secret}在哪里", f"{secret}在这里")
        sidecar.update(kept)
        sidecar.call("daily/add", summary={"topic": "题目", "facts": [f"{secret}的事实"]})
        sidecar.call("daily/add", summary={"topic": "别的", "facts": [kept]})
        wait_until_synced(sidecar)
        wait_until(lambda: {".md", ".jsonl"} <= {Path(name).suffix for name in files_naming(home, secret)})
        wait_until(lambda: secret in server.all_rows_as_text())

        meant = home.json("forget", "--query", secret)
        assert (meant["found"], meant["dryRun"], meant["forgotten"]) == (4, True, [])
        assert secret in str(sidecar.load())
        assert sidecar.call("events/forgetMatching", query=secret)["dryRun"] is True

        assert len(home.json("forget", "--query", secret, "--yes")["forgotten"]) == 4
        wait_until_synced(sidecar)
        wait_until(lambda: secret not in server.all_rows_as_text())
        assert secret not in str(sidecar.call("recall/search", query=secret)["hits"])
        wait_until(lambda: files_naming(home, secret) == [])  # the index lets go of it in steps, behind the questions
        assert kept in str(sidecar.load())
    assert files_naming(home, secret) == []
    assert any(name.endswith(".md") for name in files_naming(home, kept))
    assert home.run("forget", check=False).returncode == 2
    assert home.run("forget", "evt_1", "--query", "x", check=False).returncode == 2


def files_naming(home: Home, word: str) -> list[str]:
    """The files of a home that contain a word."""
    return [path.name for path in files_containing(home.folder, word)]


class HomeInBerlin(Home):
    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "TZ": "CET-1CEST,M3.5.0,M10.5.0/3"}


def test_a_day_begins_at_its_own_midnight_in_summer_and_in_winter(tmp_path: Path) -> None:
    home = HomeInBerlin(tmp_path / "berlin")
    times = ["2026-07-02T00:30:00+02:00", "2026-12-02T00:30:00+01:00"]
    home.json("events", "append-batch", json.dumps([{"type": "x", "ts": ts, "payload": {"a": "b"}} for ts in times]))

    for before, day, ts in zip(("2026-07-01", "2026-12-01"), ("2026-07-02", "2026-12-02"), times, strict=True):
        assert ts in str(home.json("forget", "--since", day))
        assert ts in str(home.json("forget", "--until", day))
        assert ts not in str(home.json("forget", "--until", before))


def test_a_query_without_words_is_refused_with_any_other_option(home: Home) -> None:
    home.json("events", "append", json.dumps({"type": "x", "payload": {"a": "b"}}))
    refused = home.run("forget", "--query", "\u3000", "--since", "2020-01-01", check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "query 中没有词" in refused.stderr
