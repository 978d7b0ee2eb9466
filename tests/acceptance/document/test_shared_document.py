"""`document.sharing = user`: one document for all devices of a person, real server, real files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.environment import (
    Network,
    cloud_settings,
    question_counts,
    unique_text,
    wait_for_lines,
    wait_until_reconciled,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, wait_until

HABITS = "### 工作习惯\n"
STYLE = "### 沟通风格\n"


@pytest.fixture
def homes(tmp_path: Path, local_cloud: Cloud, network: Network) -> Callable[..., Home]:
    """Homes by name; all of them reach the cloud through the one network."""

    def home(name: str, sharing: str = "user") -> Home:
        settings = {"DOCUMENT__SHARING": sharing, **cloud_settings(local_cloud, network.url)}
        return Home(tmp_path / name, device=f"device-{name}", **settings)

    return home


def open_logged_in(home: Home, user: User) -> Sidecar:
    sidecar = Sidecar(home)
    sidecar.log_in(user.email, user.password)
    wait_until_synced(sidecar)
    return sidecar


def read(home: Home) -> str:
    return home.file.read_text("utf-8") if home.file.exists() else ""


def replace(home: Home, old: str, new: str) -> None:
    text = read(home)
    assert old in text
    home.file.write_text(text.replace(old, new, 1), "utf-8")


def same_bytes(*homes: Home, holding: tuple[str, ...]) -> str:
    """Wait until all files hold these texts and are the same."""

    def alike() -> str:
        texts = {read(home) for home in homes}
        text = texts.pop()
        return text if not texts and all(words in text for words in holding) else ""

    return str(wait_until(alike))


def offline(sidecar: Sidecar) -> None:
    sidecar.call_until("sync/status", lambda status: status["cloud"]["state"] == "offline")


def test_edits_of_both_files_made_offline_are_in_both_and_the_files_are_the_same(
    homes: Callable[..., Home], user: User, network: Network
) -> None:
    home_a, home_b = homes("a"), homes("b")
    with open_logged_in(home_a, user) as a, open_logged_in(home_b, user) as b:
        question = unique_text("甲问")
        a.update(f"{question} 一 二 三 四 五 六")
        b.update(unique_text("乙问"))
        same_bytes(home_a, home_b, holding=(question, "乙问"))
        network.disconnect()
        offline(a)
        offline(b)
        replace(home_a, "一 二", "壹 二")
        replace(home_a, HABITS, f"{HABITS}- 早起\n")
        replace(home_b, "五 六", "五 陆")
        replace(home_b, STYLE, f"{STYLE}- 简短\n")
        said_offline = unique_text("离线")
        b.update(said_offline)
        for sidecar in (a, b):
            wait_until_reconciled(sidecar)
        network.reconnect()
        text = same_bytes(home_a, home_b, holding=(f"{HABITS}- 早起\n", f"{STYLE}- 简短\n", said_offline))
        assert f"- 用户问：{question} 壹 二 三 四 五 陆\n" in text


def test_one_that_joins_late_has_the_same_bytes_and_one_that_does_not_share_keeps_its_own(
    homes: Callable[..., Home], user: User
) -> None:
    home_a, home_b, home_own = homes("a"), homes("b"), homes("own", sharing="device")
    with open_logged_in(home_a, user) as a, open_logged_in(home_own, user) as own:
        word_a, word_own = unique_text("甲问"), unique_text("自问")
        a.update(word_a)
        own.update(word_own)
        wait_for_lines(home_a, word_a, word_own)
        replace(home_a, HABITS, f"{HABITS}- 早起\n")
        with open_logged_in(home_b, user) as b:
            same_bytes(home_a, home_b, holding=(word_a, word_own, "- 早起"))
            loaded = b.load(waitMs=1000)
            assert question_counts(loaded["document"]) == {word_a: 1, word_own: 1}
            assert (loaded["digest"], loaded["devices"]) == ("", [])
        memory = own.call_until("memory/load", lambda memory: "早起" in memory["digest"], waitMs=1000)
        assert question_counts(memory["document"]) == {word_own: 1}
        assert "name of device-a" in memory["digest"]
        wait_until_reconciled(own)
        assert word_a not in read(home_own)


def test_a_phone_number_stays_on_the_device_it_was_typed_on(homes: Callable[..., Home], user: User) -> None:
    home_a, home_b = homes("a"), homes("b")
    with open_logged_in(home_a, user) as a, open_logged_in(home_b, user):
        a.update("开始")
        wait_for_lines(home_a, "开始")
        wait_for_lines(home_b, "开始")
        replace(home_a, HABITS, f"{HABITS}- 电话 13812345678，晚上打\n")
        wait_for_lines(home_b, "- 电话 [手机号]，晚上打")
        replace(home_b, "晚上打", "早上打")
        wait_for_lines(home_a, "- 电话 13812345678，早上打")
        wait_until(lambda: read(home_a).replace("13812345678", "[手机号]") == read(home_b))


def test_the_first_load_after_a_start_says_everything_once(homes: Callable[..., Home], user: User) -> None:
    home_a, home_b = homes("a"), homes("b")
    word = unique_text("自动更新")
    with open_logged_in(home_a, user) as a, open_logged_in(home_b, user) as b:
        a.update(word)
        wait_until_synced(a)
        b.call_until("memory/load", lambda memory: word in memory["document"], waitMs=1000)
        wait_for_lines(home_b, word)
        wait_until_reconciled(b)
    with Sidecar(home_b) as again:
        memory = again.load()
        assert (memory["digest"], memory["devices"], memory["content"].count(word)) == ("", [], 1)
