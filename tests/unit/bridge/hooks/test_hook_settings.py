"""The hooks in the text of a settings file, over generated files."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.hooks.claude import CLAUDE
from bridge.hooks.cursor import CURSOR
from bridge.hooks.event import AgentHost
from bridge.hooks.hook_settings import is_own_command, own_commands, with_hooks, without_hooks

COMMAND = "xiaobai-memory hook"
OTHER = {"hooks": [{"type": "command", "command": "node other.js"}], "matcher": "Bash"}
EVENTS = ("SessionStart", "PostToolUse", "Stop", "sessionStart", "postToolUse")

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
hooks = st.dictionaries(st.sampled_from(EVENTS), st.lists(st.just(OTHER), min_size=1, max_size=2), max_size=3)
settings = st.dictionaries(st.text(max_size=6).filter(lambda key: key not in {"hooks", "version"}), values, max_size=4)


@st.composite
def settings_texts(draw: st.DrawFn) -> str:
    """A settings file in one of the layouts that people and programs write."""
    value: dict[str, Any] = draw(settings)
    if draw(st.booleans()):
        value = {**value, "hooks": draw(hooks.filter(bool))}
    if draw(st.booleans()):
        value = {"version": 1, **value}
    indent = draw(st.sampled_from([None, 2, 4, "\t"]))
    text = json.dumps(value, indent=indent, ensure_ascii=draw(st.booleans()))
    text += draw(st.sampled_from(["", "\n", "\n\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@pytest.mark.parametrize("host", [CLAUDE, CURSOR], ids=lambda host: host.name)
@given(text=settings_texts())
def test_install_adds_the_hooks_and_keeps_everything_else(host: AgentHost, text: str) -> None:
    before, entries = json.loads(text), host.entries(COMMAND)
    after = json.loads(with_hooks(text, entries, host.settings))
    for event, entry in entries.items():
        assert after["hooks"][event] == [*before.get("hooks", {}).get(event, []), entry]
    added = {"hooks": after["hooks"], **host.settings}
    assert after == {**before, **added} | {name: before[name] for name in host.settings if name in before}
    assert {event: after["hooks"][event] for event in before.get("hooks", {}) if event not in entries} == {
        event: value for event, value in before.get("hooks", {}).items() if event not in entries
    }


@pytest.mark.parametrize("host", [CLAUDE, CURSOR], ids=lambda host: host.name)
@given(text=settings_texts())
def test_taking_the_hooks_out_of_a_changed_file_leaves_what_others_wrote(host: AgentHost, text: str) -> None:
    before = json.loads(text)
    changed = json.dumps(json.loads(with_hooks(text, host.entries(COMMAND), host.settings)), indent=3)
    after = json.loads(without_hooks(changed))
    assert after == {**before, **{name: before.get(name, value) for name, value in host.settings.items()}}
    assert own_commands(changed).keys() == host.entries(COMMAND).keys()
    assert own_commands(without_hooks(changed)) == {}


@given(text=settings_texts())
def test_a_file_with_members_comes_back_by_the_text_alone(text: str) -> None:
    if len(json.loads(text)) and json.loads(text).get("hooks") != {}:
        assert without_hooks(with_hooks(text, CLAUDE.entries(COMMAND), {})) == text


def test_a_handler_of_ours_is_taken_out_of_an_entry_that_others_share() -> None:
    shared = {"hooks": {"Stop": [{"hooks": [{"command": "a"}, {"command": COMMAND}, {"command": "b"}]}]}}
    after = json.loads(without_hooks(json.dumps(shared)))
    assert after == {"hooks": {"Stop": [{"hooks": [{"command": "a"}, {"command": "b"}]}]}}


def test_an_empty_list_that_another_wrote_stays() -> None:
    own = {"hooks": [{"type": "command", "command": COMMAND}]}
    text = json.dumps({"hooks": {"Stop": [], "PostToolUse": [own]}})
    assert json.loads(without_hooks(text)) == {"hooks": {"Stop": []}}
    assert without_hooks('{"hooks": {}}') == '{"hooks": {}}'
    assert json.loads(without_hooks(json.dumps({"hooks": {"PostToolUse": [own]}}))) == {}


@pytest.mark.parametrize(
    "text",
    ["[]", "{} x", "{", '{"hooks": []}', '{"hooks": {}, "hooks": {}}', '{"hooks": {"PreToolUse": 1}}', "// c\n{}", "1"],
)
def test_a_text_without_a_place_for_hooks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        with_hooks(text, CLAUDE.entries(COMMAND), {})


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("xiaobai-memory hook", True),
        ("'/opt/a b/xiaobai-memory' --data-dir '/x y' hook", True),
        ('"C:/Program Files/x/xiaobai-memory.exe" hook', True),
        ("/usr/bin/python -m bridge.cli.main --data-dir /d hook", True),
        ("xiaobai-memory load", False),
        ("echo hook", False),
        ("node ~/src/xiaobai-memory/scripts/check.js hook", False),
        ("cd ~/xiaobai-memory && npx lefthook run hook", False),
        ("xiaobai-memory --data-dir /a && rm hook", False),
        ("sh -c 'xiaobai-memory hook'", False),
        ("xiaobai-memory 'hook", False),
        ("", False),
        (None, False),
    ],
)
def test_a_command_is_recognised_wherever_the_program_lies(command: object, *, own: bool) -> None:
    assert is_own_command(command) is own
