"""What a command prints for people and for programs."""

import io

import pytest

from bridge.cli.output import CliContext, print_result

TEXT = "\x1b]0;title\x07\x1b[2J\u202e用 Vim\r\x9b1m\r\n\tx"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_stored_text_controls_no_terminal_at_the_end_of_a_pipe_either(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO
) -> None:
    monkeypatch.setattr("sys.stdout", stream)
    shown: list[object] = []
    print_result(CliContext(), {"facts": [{"statement": TEXT, "count": 1}]}, shown.append)
    expected = "�]0;title��[2J�用 Vim��1m\r\n\tx"
    assert shown == [{"facts": [{"statement": expected, "count": 1}]}]
