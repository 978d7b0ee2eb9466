"""Entry ids: `ent_` and 32 letters; the hash of an entry's text.

No digits, so that no redaction rule can take an id for a number.
"""

from hashlib import sha256
from typing import Final

_HEX_TO_LETTERS: Final = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
HEX_LENGTH: Final = 32


def entry_id_from_hex(digits: str) -> str:
    """The entry id of 32 hexadecimal digits."""
    return "ent_" + digits.translate(_HEX_TO_LETTERS)


def derived_entry_id(*names: str) -> str:
    """An id computed from `names`: every device that derives it gets the same one."""
    return entry_id_from_hex(text_hash("\n".join(names))[:HEX_LENGTH])


def conflict_copy_id(entry_id: str, event_id: str) -> str:
    """The id of the line that a conflicting edit adds beside an entry."""
    return derived_entry_id(entry_id, event_id)


def fact_entry_id(fact_id: str) -> str:
    """The id of the line that shows a fact."""
    return derived_entry_id("fact", fact_id)


def text_hash(text: str) -> str:
    """The hash by which events name the text of an entry."""
    return sha256(text.encode()).hexdigest()
