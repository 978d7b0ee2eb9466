"""Read statements of the user about themselves in the words that they typed, by rules for Chinese and English."""

import re
from typing import Final

from sync.understanding.model import Statement
from sync.understanding.rules.chinese import read_chinese
from sync.understanding.rules.english import read_english
from sync.understanding.rules.typed_text import typed_sentences

MAX_STATEMENTS: Final = 12  # of one message

_CHINESE: Final = re.compile(r"[\u3400-\u9fff]")


def extract_statements(message: str, answer: str = "") -> list[Statement]:
    """The statements of a message, in its order. Pure; under 5 ms for a message.

    `answer` is part of the interface for extractors that read both sides; the rules need the message alone.
    """
    del answer
    sentences = typed_sentences(message)
    found = read_chinese(sentences) if _CHINESE.search(message) else read_english(sentences)
    return found[:MAX_STATEMENTS]
