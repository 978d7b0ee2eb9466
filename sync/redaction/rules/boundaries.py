r"""Where a value may begin and end.

RE2 has no look-around, and what may stand beside a value is not what `\b` says: a Chinese character, an underscore
or an escape such as \n and %3D before a token is an edge, another ASCII letter or digit is not.
"""


def is_word_character(char: str) -> bool:
    """Is this one character (or nothing) an ASCII letter or digit?"""
    return char.isascii() and char.isalnum()


def skip_escape(text: str, start: int) -> int:
    r"""Where a run of letters really begins: the n of \n is part of the escape, as in JSON inside of JSON."""
    return start + 1 if text[start - 1 : start] == "\\" and text[start] in "nrt" else start


def may_start(text: str, start: int) -> bool:
    """May a value begin at `start`?"""
    before = text[max(0, start - 3) : start]
    if not before or not is_word_character(before[-1]):
        return True
    return before[-2:-1] == "\\" or (before[0] == "%" and len(before) == 3)


def may_end(text: str, end: int) -> bool:
    """May a value end before `end`?"""
    return not is_word_character(text[end : end + 1])
