"""Run the examples of the README and of each chapter in docs/ in a temporary home.

A `console` block is a transcript: lines after `$ ` are commands, the others what they print. `…` matches any text,
on a line of its own for any lines. A `jsonrpc` block holds requests (`--> `) and responses (`<-- `) of one sidecar. A
`js` block is the body of an async function that Node runs.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.document.test_language import EnglishHome
from tests.sidecar import REPOSITORY, Home, Sidecar

CHAPTERS: Final = [
    "README.md",
    "README.zh-CN.md",
    *sorted(f"docs/{path.name}" for path in (REPOSITORY / "docs").glob("*.md")),
]
WITHOUT_EXAMPLE: Final = {  # lists, and a calculation
    "docs/faults.md",
    "docs/events.md",
    "docs/scale.md",
    "docs/requirements.md",
}
SHELL_SYNTAX: Final = re.compile(r"[|<>;&$`(]")
BLOCK: Final = re.compile(r"(?ms)^( *)```(console|jsonrpc|js)\n(.*?)^ *```$")


def blocks_of(chapter: str, language: str) -> list[str]:
    """The examples of a chapter in one language."""
    text = (REPOSITORY / chapter).read_text("utf-8")
    return [match[3] for match in BLOCK.finditer(text) if match[2] == language]


def transcripts_of(chapter: str) -> Iterator[tuple[str, str]]:
    """Each command of a chapter with the output that the chapter shows."""
    for block in blocks_of(chapter, "console"):
        for example in re.split(r"(?m)^\$ ", block)[1:]:
            command, _, output = example.partition("\n")
            yield command, output


def output_of(command: str, home: Home) -> str:
    """Run one command; its output with its errors. Commands without shell syntax run without a new interpreter."""
    words = [] if SHELL_SYNTAX.search(command) else shlex.split(command)
    settings = dict(word.split("=", 1) for word in words if re.match(r"XIAOBAI_\w+=", word))
    words = [word.replace("~/", f"{home.folder}/") for word in words[len(settings) :]]
    if words and words[0] == "xiaobai-memory":
        changed = type(home)(home.folder)
        changed.settings = home.settings | {name.removeprefix("XIAOBAI_"): value for name, value in settings.items()}
        done = changed.run(*words[1:], check=False)
    else:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = home.environment | {"PATH": path, "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(
            ["bash", "-c", command], env=environment, cwd=home.folder, capture_output=True, text=True, check=False
        )
    return done.stdout + done.stderr


def matches(output: str, shown: str) -> bool:
    """Whether the output is the one shown; blanks at the end of a line do not count."""
    lines = [
        r"(?:.*\n)*" if line.strip() == "…" else re.escape(line.rstrip()).replace("…", ".*") + "\n"
        for line in shown.rstrip().splitlines()
    ]
    printed = "".join(f"{line.rstrip()}\n" for line in output.rstrip().splitlines())
    return re.fullmatch("".join(lines), printed) is not None


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_chapter_has_an_example_and_its_commands_print_what_it_shows(chapter: str, tmp_path: Path) -> None:
    home = (EnglishHome if chapter == "README.md" else Home)(tmp_path)
    examples = list(transcripts_of(chapter))
    assert bool(examples) != (chapter in WITHOUT_EXAMPLE)
    for command, shown in examples:
        output = output_of(command, home)
        assert matches(output, shown), f"{chapter}: $ {command}\n{output}\n--- the chapter shows:\n{shown}"


@pytest.mark.parametrize("chapter", [chapter for chapter in CHAPTERS if blocks_of(chapter, "jsonrpc")])
def test_requests_have_the_responses_that_are_shown(chapter: str, tmp_path: Path) -> None:
    with Sidecar(Home(tmp_path)) as sidecar:
        for request, shown in re.findall(r"(?m)^--> (.*)\n<-- (.*)$", "".join(blocks_of(chapter, "jsonrpc"))):
            message = json.loads(request)
            result = sidecar.call(message["method"], **message["params"])
            response = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, ensure_ascii=False)
            assert matches(response, shown), f"{request}\n{response}\n--- the chapter shows:\n{shown}"


@pytest.mark.parametrize("chapter", [chapter for chapter in CHAPTERS if blocks_of(chapter, "js")])
def test_javascript_examples_run(chapter: str, tmp_path: Path) -> None:
    home = Home(tmp_path)
    constants = "const userMessage = '你好', aiResponse = '你好！';"
    for block in blocks_of(chapter, "js"):
        body = block.replace("'./electron-snippets", f"'{REPOSITORY}/electron-snippets")
        script = tmp_path / "example.js"
        script.write_text(f"(async () => {{ {constants}\n{body}\nawait memory.close(); }})();", "utf-8")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        subprocess.run(["node", str(script)], env=home.environment | {"PATH": path}, check=True, timeout=60)
    assert home.file.exists()


@pytest.mark.parametrize(
    ("output", "shown", "same"),
    [
        ("a\nb\nc\n", "a\n…\n", True),
        ("recorded evt_1  \n", "recorded evt_…\n", True),
        ("a\nb\n", "a\n", False),
        ("a (1)\n", "a (2)\n", False),
        ("", "", True),
    ],
)
def test_an_ellipsis_matches_any_text(output: str, shown: str, *, same: bool) -> None:
    assert matches(output, shown) is same
