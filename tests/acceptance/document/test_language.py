"""The language of a new document, and that an existing one keeps its own, with real processes."""

from pathlib import Path

import pytest

from tests.acceptance.environment import wait_for_lines, wait_until_reconciled
from tests.sidecar import Home, Sidecar

ENGLISH_HEADINGS = "# AI Conversation Memory\n\n## User preferences\n\n### Work habits\n- (to be added)\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def test_an_app_with_an_english_locale_gets_an_english_document_prompt_and_lines(home: Home) -> None:
    with Sidecar(home) as sidecar:
        sidecar.call("initialize", locale="en-US")
        empty = sidecar.load()
        assert empty["source"] == "template"
        assert empty["document"].startswith(ENGLISH_HEADINGS)
        sidecar.update("Where does the API start", "At /api/v2:\n```python\nx = 1\ny = 2\n```")
        wait_for_lines(home, "- User asked: Where does the API start")
        text = home.file.read_text("utf-8")
        assert text.startswith(ENGLISH_HEADINGS)
        assert "- AI answered: At /api/v2: [code python, 2 lines]\n" in text
        assert "**Last updated**: " in text
        prompt = sidecar.call("memory/systemPrompt")["prompt"]
        assert prompt.startswith("Between the two lines memory-")
        assert " User asked: Where does the API start; AI answered: At /api/v2: [code python, 2 lines]\n" in prompt
        assert not any("\u4e00" <= char <= "\u9fff" for char in prompt)
    assert home.json("load")["document"] == home.file.read_text("utf-8")  # a later process needs no locale


def test_the_environment_tells_a_command_its_language(home: Home) -> None:
    english = EnglishHome(home.folder)
    english.run("update", "Where does the API start", "At /api/v2")
    assert "- User asked: Where does the API start\n" in home.file.read_text("utf-8")


def test_an_existing_document_keeps_its_language(home: Home) -> None:
    home.run("update", "接口前缀是什么", "是 /api/v2")
    before = home.file.read_text("utf-8")
    english = EnglishHome(home.folder)
    english.run("update", "Which database", "PostgreSQL")
    text = english.file.read_text("utf-8")
    assert "- 用户问：Which database\n- AI 答：PostgreSQL\n" in text
    assert "User asked" not in text
    assert [line for line in before.splitlines() if line.startswith("#")] == [
        line for line in text.splitlines() if line.startswith("#")
    ]


def test_the_setting_decides_what_is_written_from_now_on(home: Home) -> None:
    home.run("update", "接口前缀是什么", "是 /api/v2")
    home.settings["DOCUMENT__LANGUAGE"] = "en"
    home.run("update", "Which database", "PostgreSQL")
    text = home.file.read_text("utf-8")
    assert "- 用户问：接口前缀是什么\n- AI 答：是 /api/v2\n\n- User asked: Which database\n" in text
    assert text.startswith("# AI 对话记忆\n")


def test_edits_and_repeats_of_an_english_document_work_as_in_chinese(home: Home) -> None:
    home.settings["DOCUMENT__LANGUAGE"] = "en"
    with Sidecar(home) as sidecar:
        sidecar.update("Which database", "PostgreSQL")
        wait_for_lines(home, "User asked: Which database")
        typed = home.file.read_text("utf-8").replace(
            "### Work habits\n- (to be added)", "### Work habits\n- logs first"
        )
        home.file.write_text(typed.replace("PostgreSQL", "PostgreSQL 16"), "utf-8")
        wait_until_reconciled(sidecar)
        assert sidecar.update("Which editor", "Vim")["recorded"]
        assert sidecar.update("which editor?", "Vim")["reason"] == "counted"
        wait_for_lines(home, "User asked: Which editor (×2)")
        text = home.file.read_text("utf-8")
        assert "### Work habits\n- logs first\n" in text
        assert "- AI answered: PostgreSQL 16\n" in text
        assert sidecar.load(maxChars=300)["content"].startswith("# AI Conversation Memory\n\n## User preferences\n")


class EnglishHome(Home):
    """The same home, used from an English environment."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.settings = Home(folder).settings

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "LC_ALL": "en_US.UTF-8"}
