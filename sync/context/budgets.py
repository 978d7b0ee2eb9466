"""How much of the memory each reader is given. Pure.

Characters are code points, frames included. A limit is never exceeded.
"""

from typing import Final

STABLE_CHARS: Final = 6_000  # the block of a system prompt: about 4,000 tokens of Chinese
TURN_CHARS: Final = 2_000  # the block before a message
TURN_ITEMS: Final = 3  # more than three distract a model more than they help
ITEM_CHARS: Final = 400  # of one item in a turn block, so that three fit with their frame
