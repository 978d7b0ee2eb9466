"""How much of the memory each reader is given. Pure; a hook imports it.

Characters are code points, frames included. A limit is never exceeded.
"""

from typing import Final

STABLE_CHARS: Final = 2_000  # the block of a system prompt
LIKELY_CHARS: Final = 600  # of it, for what the user said and may be a fact
LATE_CHARS: Final = 600  # of it, for what was important of late and is no fact
TURN_CHARS: Final = 1_200  # the block before a message
TURN_ITEMS: Final = 5  # lines of it
ITEM_CHARS: Final = 400  # of the first line; the others have half of it, so that five fit with their frame
SESSION_TURN_CHARS: Final = 6_000  # of all turn blocks of a session
SESSION_START_CHARS: Final = 2_000  # the block of a hook at the start of an agent's session
SESSION_NOTE_CHARS: Final = 1_800  # of the notes in it, so that they fit with the frame
HINT_BYTES: Final = 480  # of UTF-8, a lesson beside the call of a tool: long ones crowd out the work
