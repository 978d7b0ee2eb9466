"""All campaigns, in the order in which `make fuzz` runs them."""

from typing import Final

from tests.fuzz.campaign import Campaign
from tests.fuzz.hook_input import HOOKS
from tests.fuzz.markdown import DESK, MARKDOWN
from tests.fuzz.paths import IDS, PATHS
from tests.fuzz.prompt_injection import POISON
from tests.fuzz.rpc.framing import FRAMES, PROCESS
from tests.fuzz.server_replies import REPLIES

CAMPAIGNS: Final[tuple[Campaign, ...]] = (MARKDOWN, DESK, FRAMES, PROCESS, REPLIES, PATHS, IDS, POISON, HOOKS)
