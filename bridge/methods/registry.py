"""All rows of all rooms, as one table."""

from typing import Final

from bridge.methods import cloud, events, memory
from bridge.methods.table import Table
from sync.app import App

TABLE: Final[Table[App]] = Table([*memory.METHODS, *cloud.METHODS, *events.METHODS])
