"""All rows of all rooms, as one table."""

from typing import Final

from bridge.methods import (
    archive,
    auth,
    cloud,
    command,
    daily,
    devices,
    document,
    event_files,
    events,
    forgetting,
    health,
    insights,
    memory,
    recall,
    redaction,
    retention,
    watermarks,
)
from bridge.methods.door import Door
from bridge.methods.table import Table

TABLE: Final[Table[Door]] = Table(
    [
        *memory.METHODS,
        *document.METHODS,
        *cloud.METHODS,
        *auth.METHODS,
        *devices.METHODS,
        *events.METHODS,
        *forgetting.METHODS,
        *event_files.METHODS,
        *insights.METHODS,
        *recall.METHODS,
        *daily.METHODS,
        *command.METHODS,
        *archive.METHODS,
        *retention.METHODS,
        *watermarks.METHODS,
        *redaction.METHODS,
        *health.METHODS,
    ]
)
