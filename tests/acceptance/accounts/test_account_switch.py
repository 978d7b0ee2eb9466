"""Several users on one machine: each has a separate memory, and the memory file shows that of the current login."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.environment import (
    ServerRows,
    cloud_settings,
    events_of,
    integrity,
    local_rows,
    question_counts,
    unique_text,
    wait_for_lines,
    wait_until_reconciled,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.proof import first_in_test
from tests.sidecar import CallFailed, Home, Sidecar, wait_until

KILLS = first_in_test([2, 6])  # of a switch, at moments spread over the time it takes


@pytest.fixture
def home(tmp_path: Path, local_cloud: Cloud) -> Home:
    return Home(tmp_path / "home", device="device-shared", **cloud_settings(local_cloud))


@pytest.fixture
def sidecar(home: Home) -> Iterator[Sidecar]:
    with Sidecar(home) as sidecar:
        yield sidecar


def as_user(sidecar: Sidecar, user: User) -> str:
    """Log in and return the user whose memory is open then."""
    account = sidecar.log_in(user.email, user.password)["account"]
    return str(account["userId"])


class TestTwoUsers:
    def test_each_user_has_a_separate_document_and_finds_it_again(self, sidecar: Sidecar, ann: User, ben: User) -> None:
        home, anns, bens = sidecar.home, unique_text("安"), unique_text("本")
        assert as_user(sidecar, ann) == ann.user_id
        sidecar.update(anns)
        wait_for_lines(home, anns)
        before = home.file.read_bytes()

        assert as_user(sidecar, ben) == ben.user_id
        loaded = sidecar.load()
        assert (loaded["source"] == "template", anns in loaded["content"]) == (True, False)
        assert not home.file.exists()
        sidecar.update(bens)
        wait_for_lines(home, bens)
        assert anns not in home.file.read_text("utf-8")

        assert as_user(sidecar, ann) == ann.user_id
        wait_until(lambda: home.file.read_bytes() == before)
        assert anns in sidecar.load()["content"]
        assert bens not in sidecar.load()["content"]

    def test_only_their_own_words_reach_the_server(
        self, sidecar: Sidecar, ann: User, ben: User, local_cloud: Cloud
    ) -> None:
        anns, bens = unique_text("安"), unique_text("本")
        as_user(sidecar, ann)
        sidecar.update(anns)
        as_user(sidecar, ben)
        sidecar.update(bens)
        wait_until_synced(sidecar)
        as_user(sidecar, ann)
        wait_until_synced(sidecar)
        assert anns in ServerRows(local_cloud, ann.user_id).all_rows_as_text()
        assert bens not in ServerRows(local_cloud, ann.user_id).all_rows_as_text()
        assert bens in ServerRows(local_cloud, ben.user_id).all_rows_as_text()
        assert anns not in ServerRows(local_cloud, ben.user_id).all_rows_as_text()

    def test_a_line_typed_just_before_belongs_to_the_one_who_leaves(
        self, sidecar: Sidecar, ann: User, ben: User
    ) -> None:
        home = sidecar.home
        as_user(sidecar, ann)
        sidecar.update("安的话")
        wait_for_lines(home, "安的话")
        text = home.file.read_text("utf-8")
        home.file.write_text(text.replace("### 工作习惯\n", "### 工作习惯\n- 安在离开前打的\n", 1), "utf-8")
        as_user(sidecar, ben)
        assert "安在离开前打的" not in sidecar.load()["content"]
        assert events_of(sidecar, "entry_added") == []
        as_user(sidecar, ann)
        assert "安在离开前打的" in sidecar.load()["content"]

    def test_a_stale_buffer_saved_afterwards_is_parked_and_never_ingested(
        self, sidecar: Sidecar, ann: User, ben: User
    ) -> None:
        home = sidecar.home
        as_user(sidecar, ann)
        sidecar.update("安的话")
        wait_for_lines(home, "安的话")
        buffer = home.file.read_text("utf-8").replace("### 工作习惯\n", "### 工作习惯\n- 旧窗口里的一行\n", 1)
        as_user(sidecar, ben)
        sidecar.update("本的话")
        wait_for_lines(home, "本的话")
        home.file.write_text(buffer, "utf-8")
        wait_until_reconciled(sidecar)
        assert "安的话" not in sidecar.load()["content"]
        assert "旧窗口" not in sidecar.load()["content"]
        assert "本的话" in home.file.read_text("utf-8")
        assert events_of(sidecar, "entry_added") == []
        as_user(sidecar, ann)
        warnings = sidecar.call("sync/status")["document"]["warnings"]
        parked = next(Path(text.rpartition(" in ")[2]) for text in warnings if text.startswith("documents_parked"))
        assert [path.read_text("utf-8") for path in parked.glob("*.md")] == [buffer]

    def test_a_login_by_the_command_line_moves_a_running_sidecar_too(
        self, sidecar: Sidecar, ann: User, ben: User
    ) -> None:
        as_user(sidecar, ann)
        sidecar.update("安的话")
        sidecar.home.run("login", ben.email, "--password-stdin", stdin=f"{ben.password}\n")
        sidecar.call_until("auth/status", lambda answer: answer["account"]["userId"] == ben.user_id)
        assert "安的话" not in sidecar.load()["content"]

    def test_without_a_sidecar_the_file_changes_hands_with_the_login(self, home: Home, ann: User, ben: User) -> None:
        home.run("login", ann.email, "--password-stdin", stdin=f"{ann.password}\n")
        home.run("update", "安的话", "好的")
        assert "安的话" in home.file.read_text("utf-8")
        home.run("login", ben.email, "--password-stdin", stdin=f"{ben.password}\n")
        assert not home.file.exists()
        assert home.json("load")["source"] == "template"
        home.run("login", ann.email, "--password-stdin", stdin=f"{ann.password}\n")
        assert "安的话" in home.file.read_text("utf-8")

    def test_wrong_credentials_of_the_other_change_nothing(self, sidecar: Sidecar, ann: User, ben: User) -> None:
        as_user(sidecar, ann)
        before = sidecar.home.installation
        with pytest.raises(CallFailed) as refused:
            sidecar.log_in(ben.email, "not his password")
        assert refused.value.kind == "bad_credentials"
        assert sidecar.home.installation == before

    def test_calls_under_way_are_answered_by_the_memory_they_were_asked_of(
        self, sidecar: Sidecar, ann: User, ben: User
    ) -> None:
        as_user(sidecar, ann)
        early = [sidecar.send("memory/update", userMessage=f"安 {n}", aiResponse="好") for n in range(20)]
        switch = sidecar.send("auth/password", email=ben.email, password=ben.password)
        late = [sidecar.send("memory/load", waitMs=0) for _ in range(20)]
        for number in early:
            assert sidecar.wait_for_response(number)["recorded"]
        assert sidecar.wait_for_response(switch)["account"]["userId"] == ben.user_id
        for number in late:
            sidecar.wait_for_response(number)
        assert "安" not in sidecar.load()["content"]
        as_user(sidecar, ann)
        assert len(events_of(sidecar, "exchange_recorded")) == 20


class TestKilled:
    @pytest.mark.parametrize("kills", KILLS)
    def test_at_any_moment_of_a_switch_nothing_of_the_first_reaches_the_second(
        self, home: Home, ann: User, ben: User, local_cloud: Cloud, kills: int
    ) -> None:
        """Fifty events of Ann's wait; the sidecar is killed while Ben logs in; then Ben finds nothing of hers."""
        offline = {**home.settings, "SYNC__POLL_SECONDS": "3600"}
        chance = random.Random(4)
        with Sidecar(home) as sidecar:
            as_user(sidecar, ann)
        for round_ in range(kills):
            home.settings = offline
            sidecar = Sidecar(home)
            as_user(sidecar, ann)
            for number in [
                sidecar.send("memory/update", userMessage=f"安 {round_} {n}", aiResponse="好") for n in range(50)
            ]:
                sidecar.wait_for_response(number)
            sidecar.send("auth/password", email=ben.email, password=ben.password)
            time.sleep(chance.uniform(0, 0.5))  # the moment of the kill, not a wait for an effect
            sidecar.kill()
            with Sidecar(home) as again:
                assert as_user(again, ben) == ben.user_id
                wait_until_synced(again)
                assert events_of(again, "exchange_recorded") == []
                assert "安" not in again.load()["content"]
                assert not home.file.exists()
                assert integrity(home) == "ok"
                assert "安" not in ServerRows(local_cloud, ben.user_id).all_rows_as_text()
                as_user(again, ann)
                wait_until_synced(again)
                assert len(question_counts(again.load()["content"])) == 50 * (round_ + 1)
        stored = ServerRows(local_cloud, ann.user_id).event_ids()
        assert len(stored) == len(set(stored)) == 50 * kills


class TestGuests:
    def test_a_guest_s_words_go_to_the_user_who_logs_in_even_with_a_profile_here(
        self, sidecar: Sidecar, ann: User, ben: User
    ) -> None:
        as_user(sidecar, ben)
        sidecar.update("本早先说的")
        as_user(sidecar, ann)
        wait_until_synced(sidecar)
        sidecar.call("auth/logout", localCopy="remove")
        sidecar.call_until("auth/status", lambda answer: answer["account"]["state"] == "guest")
        guest = sidecar.update("客人说的")["eventId"]
        profile = sidecar.home.installation["profile"]
        as_user(sidecar, ben)
        loaded = sidecar.load()["content"]
        assert "客人说的" in loaded
        assert "本早先说的" in loaded
        assert guest in [event["event_id"] for event in events_of(sidecar, "exchange_recorded")]
        wait_until(lambda: not (sidecar.home.data / "profiles" / profile).exists())


class TestLoggingOut:
    def test_keeps_the_copy_unless_asked(self, sidecar: Sidecar, ann: User) -> None:
        as_user(sidecar, ann)
        sidecar.update("安的话")
        wait_for_lines(sidecar.home, "安的话")
        assert sidecar.call("auth/logout")["account"]["state"] == "logged_out"
        assert "安的话" in sidecar.load()["content"]

    def test_with_removal_nothing_stays_on_this_machine_and_all_comes_back(self, sidecar: Sidecar, ann: User) -> None:
        home, words = sidecar.home, unique_text("安")
        as_user(sidecar, ann)
        sidecar.update(words)
        wait_for_lines(home, words)
        wait_until_synced(sidecar)
        answer = sidecar.call("auth/logout", localCopy="remove")
        assert answer["account"]["state"] == "guest"
        wait_until(lambda: not home.file.exists())
        assert sidecar.load()["source"] == "template"
        wait_until(lambda: len(list((home.data / "profiles").iterdir())) == 1)
        assert words.encode() not in b"".join(path.read_bytes() for path in home.data.rglob("*") if path.is_file())
        as_user(sidecar, ann)
        sidecar.call_until("events/read", lambda page: words in str(page))

    def test_what_is_not_sent_yet_is_not_thrown_away_unasked(self, home: Home, ann: User) -> None:
        with Sidecar(home) as sidecar:
            as_user(sidecar, ann)
            wait_until_synced(sidecar)
        home.settings["SUPABASE_URL"] = "http://127.0.0.1:9"  # no server listens there
        with Sidecar(home) as sidecar:
            sidecar.update("还没送出去")
            with pytest.raises(CallFailed) as refused:
                sidecar.call("auth/logout", localCopy="remove")
            assert refused.value.kind == "not_synced"
            assert "还没送出去" in sidecar.load()["content"]
            sidecar.call("auth/logout", localCopy="remove", evenUnsent=True)
            wait_until(lambda: sidecar.load()["source"] == "template")
        assert local_rows(home, "select count(*) from events") == [(0,)]
