"""All rows of all rooms, as one table."""

from typing import Final

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import MethodTable
from bridge.methods import doctor
from bridge.methods.account import auth, cloud, devices
from bridge.methods.log import archive, event_files, events, forget, redaction, retention, watermarks
from bridge.methods.memory import daily, document, insights, load_update, recall, spoken_commands

METHOD_TABLE: Final[MethodTable[AppProvider]] = MethodTable(
    [
        *load_update.METHODS,
        *document.METHODS,
        *cloud.METHODS,
        *auth.METHODS,
        *devices.METHODS,
        *events.METHODS,
        *forget.METHODS,
        *event_files.METHODS,
        *insights.METHODS,
        *recall.METHODS,
        *daily.METHODS,
        *spoken_commands.METHODS,
        *archive.METHODS,
        *retention.METHODS,
        *watermarks.METHODS,
        *redaction.METHODS,
        *doctor.METHODS,
    ]
)
