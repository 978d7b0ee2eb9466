"""Whatever a command prints is in one language: that of the setting, of the memory file or of the shell."""

import re
from pathlib import Path

import pytest

from tests.acceptance.document.test_language import EnglishHome
from tests.sidecar import CallFailed, Home, Sidecar

CHINESE = re.compile("[\u4e00-\u9fff]")
CODE = re.compile(r"`[^`]*`|\S*[/_=]\S*|xiaobai-memory [a-z -]+|--\S+|INDEX\.md|SQLite|Python|Linux")
ENGLISH = re.compile(r"(?:\b[A-Za-z]{2,}\b[ ,:;]+){2}\b[A-Za-z]{2,}\b")
COMMANDS = (
    ["load"],
    ["status"],
    ["search", "{term}"],
    ["search", "{unknown}"],
    ["history"],
    ["doctor"],
    ["facts", "list"],
    ["facts", "list", "{unknown}"],
    ["facts", "review"],
    ["facts", "explain", "nothing"],
    ["lessons", "list"],
    ["lessons", "stats"],
    ["lessons", "learn", "error"],
    ["lessons", "show", "err-1"],
    ["insights", "report"],
    ["insights", "profile"],
    ["insights", "next"],
    ["notes", "init"],
    ["notes", "list"],
    ["notes", "session"],
    ["notes", "questions"],
    ["notes", "show", "MEM-1"],
    ["daily", "list"],
    ["daily", "status"],
    ["daily", "show", "2026-13-45"],
    ["daily", "clean"],
    ["lan", "status"],
    ["lan", "peers"],
    ["quarantine", "list"],
    ["retention", "plan"],
    ["redact", "--log"],
    ["restore", "abc"],
    ["resolve", "accept"],
    ["forget", "nothing"],
    ["hooks", "status"],
)


def test_an_english_shell_reads_english_alone(tmp_path: Path) -> None:
    home = EnglishHome(tmp_path / "a")
    home.run("update", "I prefer tabs over spaces", "Noted.")
    for line in printed(home, term="tabs", unknown="helicopter"):
        assert not CHINESE.search(line), line


def test_a_chinese_memory_is_answered_in_chinese_whatever_the_shell_says(tmp_path: Path) -> None:
    Home(tmp_path / "a").run("update", "我喜欢用四个空格缩进", "好的。")
    for line in printed(EnglishHome(tmp_path / "a"), term="空格", unknown="直升机"):
        words = CODE.sub("", line)
        assert CHINESE.search(line) or not ENGLISH.search(words), line


def printed(home: Home, **words: str) -> list[str]:
    """Each line that the commands print."""
    lines = []
    for command in COMMANDS:
        project = ["--project", str(home.folder)] if command[0] == "notes" else []  # else it is the repository
        done = home.run(*(word.format(**words) for word in command), *project, check=False)
        lines += (done.stdout + done.stderr).splitlines()
    return lines


def test_a_client_that_names_its_locale_reads_errors_in_that_language(tmp_path: Path) -> None:
    sentences = {"zh-CN": "没有这个编号的事实", "en-US": "no fact has this id", "": "no fact has this id"}
    for locale, message in sentences.items():
        with Sidecar(Home(tmp_path / (locale or "none"))) as sidecar:
            sidecar.call("initialize", **({"locale": locale} if locale else {}))
            with pytest.raises(CallFailed, match=message) as refused:
                sidecar.call("understanding/explain", factId="nothing")
            assert refused.value.kind == "invalid_input"
