"""What is kept of commands and files in events that leave the device."""

import json
import re
from importlib.resources import files
from typing import Any

import pytest

from sync.insights.features import stage_of
from sync.lessons.commands import command_shape, file_shape, is_risky
from tests.support import event


@pytest.mark.parametrize(
    ("command", "shape"),
    [
        ("npm run build", "npm run"),
        ("cd app && sudo pip install acme-secret", "pip install"),
        ("python -m pytest tests/acme", "python -m pytest"),
        ("python -m acme", "python"),
        ("echo hunter2passphrase", "echo"),
        ("ssh prod-db-of-acme", "ssh"),
        ("make acme-release", "make"),
        ("git hunter2passphrase", "git"),
        ('TOKEN="a secret phrase" make test', ""),
        ("", ""),
    ],
)
def test_a_command_keeps_its_program_and_a_known_subcommand_only(command: str, shape: str) -> None:
    assert command_shape(command) == shape


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/home/anna/acme/app.py", "*.py"),
        ("/home/anna/acme/tests/app.py", "test_*.py"),
        ("C:/acme/a.spec.ts", "test_*.ts"),
        ("/home/anna/README.md", "*.md"),
        ("/home/anna/.hunter2passphrase", "*"),
        ("", ""),
    ],
)
def test_a_file_keeps_its_suffix_and_whether_it_is_a_test(path: str, shape: str) -> None:
    assert file_shape(path) == shape
    stages = [
        stage_of(event(1, type="tool_call", payload={"tool": "Edit", "details": {"file_path": one}}))
        for one in (path, shape)
    ]
    assert stages[0] == stages[1]


RISKS = json.loads(files("sync.lessons").joinpath("risky_commands.json").read_text("utf-8"))["forms"]


@pytest.mark.parametrize("group", RISKS, ids=lambda group: group["category"])
def test_a_risky_command_is_known_by_its_form(group: dict[str, Any]) -> None:
    assert [text for text in group["positives"] if not is_risky([text])] == []
    assert [text for text in group["negatives"] if is_risky([text])] == []
    for form in group["forms"]:
        assert any(re.search(form, text, re.IGNORECASE) for text in group["positives"]), form


def test_no_form_takes_long_for_a_long_command() -> None:
    assert not is_risky(["curl " * 400 + "x", "git push " * 200, "verify" * 300, "a" * 2_000, "--no-" * 400])
