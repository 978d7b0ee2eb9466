"""The command lines that are parsed without typer."""

import inspect

import pytest
from typer.main import get_command

from bridge.cli.fast_commands import FAST_COMMANDS, FastCommand, parse
from bridge.cli.parser import app


@pytest.mark.parametrize("path", FAST_COMMANDS, ids=" ".join)
def test_a_command_has_the_arguments_options_and_defaults_that_typer_knows(path: tuple[str, ...]) -> None:
    command = get_command(app)
    for name in path:
        command = command.commands[name]  # type: ignore[attr-defined]
    parameters = [one for one in command.params if one.name not in {"json", "help"}]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    fast = FAST_COMMANDS[path]
    assert (len(arguments), sum(one.required for one in arguments)) == (fast.arguments, fast.required)
    options = {opt: one for one in parameters if one.param_type_name == "option" for opt in one.opts}
    assert set(options) == set(fast.options)
    defaults = inspect.signature(fast.build).parameters
    for opt, option in fast.options.items():
        assert (options[opt].default or None) == (defaults[option.name].default or None)
        assert options[opt].is_flag is (option.convert is None)  # type: ignore[attr-defined]
        assert options[opt].multiple is option.repeatable


@pytest.mark.parametrize(
    ("line", "positional", "options"),
    [
        ("load --wait-ms 5 --prompt", (), {"wait_ms": 5, "prompt": True}),
        ("--json load", (), {}),
        ("update - 好 --importance=0.5 --key k", ("-", "好"), {"importance": 0.5, "key": "k"}),
        ("update --key k 你 好", ("你", "好"), {"key": "k"}),
        (
            "search 重试 --kind fact --kind daily --preset fading",
            ("重试",),
            {"kind": ["fact", "daily"], "preset": "fading"},
        ),
        ("events read", (), {}),
        ("events append {}", ("{}",), {}),
    ],
)
def test_an_ordinary_command_line_is_parsed(line: str, positional: tuple[str, ...], options: dict[str, object]) -> None:
    parsed = parse(line.split())
    assert parsed is not None
    assert (parsed.positional, parsed.options) == (positional, options)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--help",
        "load --help",
        "load -h",
        "load superfluous",
        "load --wait 5",
        "load --wait-ms",
        "load --wait-ms five",
        "load --wait-ms -5",
        "load --prompt=yes",
        "load --scope all",
        "update one",
        "update -- one two",
        "search x --preset none",
        "--data-dir",
        "events tail",
        "events --json append {}",
        "history",
    ],
)
def test_everything_else_is_left_to_typer(line: str) -> None:
    assert parse(line.split()) is None


@pytest.mark.parametrize("line", ["--json --data-dir /d status", "--data-dir=/d status --json"])
def test_the_options_before_the_verb_are_kept(line: str) -> None:
    parsed = parse(line.split())
    assert parsed is not None
    assert parsed.cli.json
    assert parsed.cli.flags == {"data_dir": "/d"}
    assert isinstance(parsed.command, FastCommand)
