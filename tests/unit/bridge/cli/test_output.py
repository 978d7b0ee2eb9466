"""What a command prints for people and for programs."""

import errno
import io

import pytest

from bridge.cli.output import CliContext, flushed_stdout, print_result

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


def test_an_error_of_another_stream_is_not_taken_for_one_of_stdout() -> None:
    with pytest.raises(OSError, match="inotify instance limit reached"), flushed_stdout():
        raise OSError(errno.EMFILE, "inotify instance limit reached")
