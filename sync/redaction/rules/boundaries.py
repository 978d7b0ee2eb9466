r"""Whether a value may begin or end at a position.

`\b` is not enough: a Chinese character, an underscore or an escape such as \n and %3D before a token is a boundary,
another ASCII letter or digit is not.
"""


def is_word_character(char: str) -> bool:
    """Whether a character is an ASCII letter or digit; False for an empty string."""
    return char.isascii() and char.isalnum()


def skip_escape(text: str, start: int) -> int:
    r"""Skip the n of \n, which belongs to an escape, as in JSON inside JSON."""
    return start + 1 if text[start - 1 : start] == "\\" and text[start] in "nrt" else start


def may_start(text: str, start: int) -> bool:
    """Whether a value may begin at `start`."""
    before = text[max(0, start - 3) : start]
    if not before or not is_word_character(before[-1]):
        return True
    return before[-2:-1] == "\\" or (before[0] == "%" and len(before) == 3)


def may_end(text: str, end: int) -> bool:
    """Whether a value may end before `end`."""
    return not is_word_character(text[end : end + 1])
