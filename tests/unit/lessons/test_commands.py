"""What is kept of commands and files in events that leave the device."""

import pytest

from sync.insights.features import stage_of
from sync.lessons.commands import command_shape, file_shape
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
