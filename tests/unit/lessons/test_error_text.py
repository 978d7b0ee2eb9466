"""The identity of an error, and what is no error."""

import pytest

from sync.lessons.error_text import error_identity, error_key, errors_in, is_interrupt, keys_in_output


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("cannot import name 'Depends' from 'fastapi'", "cannot import name 'Query' from 'x'"),
        ("src/api/routes.py:15: undefined: foo", "lib/b.py:9:4: undefined: foo"),
        ("connect ECONNREFUSED 127.0.0.1:5432", "2026-02-02 10:00:00 ERROR connect ECONNREFUSED 10.0.0.7:80"),
        ("第 12 行出现错误 0x7ffab", "第 9 行出现错误 0x1"),
        ("致命错误：找不到文件 “a.h”", "错误：找不到文件 “b.h”"),
    ],
)
def test_what_differs_from_run_to_run_is_not_part_of_the_identity(first: str, second: str) -> None:
    assert error_identity("python", "", first) == error_identity("python", "", second) is not None


def test_type_language_and_words_are_part_of_the_identity() -> None:
    one = error_identity("python", "ImportError", "cannot import name 'a'")
    assert one == error_identity("python", "", "ImportError: cannot import name 'b'")
    assert one != error_identity("go", "ImportError", "cannot import name 'a'")
    assert one != error_identity("python", "KeyError", "cannot import name 'a'")
    assert error_key("", "找不到文件") != error_key("", "找不到模块")


def test_an_error_is_found_in_a_longer_output() -> None:
    output = "Traceback (most recent call last):\n  File \"/a/b.py\", line 3\nImportError: cannot import name 'a'\n"
    assert errors_in(output)[0].type == "ImportError"
    assert error_key("ImportError", "cannot import name 'b'") in keys_in_output(output)


@pytest.mark.parametrize(("code", "text"), [(130, ""), (143, ""), (None, "KeyboardInterrupt"), (1, "^C")])
def test_an_interrupt_by_the_user_is_no_error(code: int | None, text: str) -> None:
    assert is_interrupt(code, text)
    assert not is_interrupt(1, "ImportError: x")
