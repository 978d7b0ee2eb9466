"""All campaigns, in the order in which `make fuzz` runs them."""

from typing import Final

from tests.hostile.campaign import Campaign
from tests.hostile.frames import FRAMES, PROCESS
from tests.hostile.markdown import DESK, MARKDOWN
from tests.hostile.paths import IDS, PATHS
from tests.hostile.poison import POISON
from tests.hostile.replies import REPLIES

CAMPAIGNS: Final[tuple[Campaign, ...]] = (MARKDOWN, DESK, FRAMES, PROCESS, REPLIES, PATHS, IDS, POISON)
