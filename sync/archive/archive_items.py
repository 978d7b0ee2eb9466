"""Parse the event lines of an archive into items to import, checked and redacted like any foreign event. Pure."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.archive.container import ArchiveInfo
from sync.archive.item_import import SOURCE_DEVICE_FIELD, ImportItem
from sync.archive.model import ArchiveImportResult
from sync.errors import InvalidInput, RedactionFailed
from sync.log.envelope import DECODE_ERRORS, from_wire
from sync.log.event_types import RETRACTING_TYPES
from sync.log.ingest import DraftBuilder
from sync.log.model import Event, EventDraft, Origin, is_excluded_from_import
from sync.log.retractions import redacted_payload

KNOWN_ORIGINS: Final = frozenset(Origin)


class ArchiveLineParser(msgspec.Struct, frozen=True):
    """Parses lines of one archive for one device. The exporter's own events become events of this device."""

    device_id: str
    intake: DraftBuilder
    info: ArchiveInfo

    def parse(
        self, lines: bytes, result: ArchiveImportResult, check_cancelled: Callable[[], None]
    ) -> tuple[list[ImportItem], set[str]]:
        """Return the items, and the ids of messages that were cut; refused lines are noted in `result`."""
        items: list[ImportItem] = []
        shortened_ids: set[str] = set()
        for line in lines.splitlines():
            check_cancelled()
            try:
                value = msgspec.json.decode(line)
            except DECODE_ERRORS:
                result.refuse("an event", "its line is no JSON")
                continue
            if not isinstance(value, dict) or is_excluded_from_import(value.get("type")):
                continue
            try:
                event = from_wire(value)
                item = self._parse_item(value, event)
                items.append(item)
                if isinstance(item, EventDraft) and self.intake.is_shortened(event.type, event.payload):
                    shortened_ids.add(str(item.event_id))
            except (InvalidInput, RedactionFailed) as error:
                result.refuse(str(value.get("event_id")), error.message)
        return items, shortened_ids

    def _parse_item(self, value: dict[str, Any], event: Event) -> ImportItem:
        is_ours = event.device_id == self.device_id or self.info.is_from_exporter(event)
        intake = self.intake if is_ours else replace(self.intake, store_messages=True)
        origin = value["origin"] if value["origin"] in KNOWN_ORIGINS else str(Origin.IMPORTED)
        fields = {name: item for name, item in value.items() if name != "session_id" or item}
        draft = intake.build({**fields, "origin": origin}, ids_are_known=True)
        if event.type in RETRACTING_TYPES:
            draft = replace(draft, payload=redacted_payload(event, intake.redactor))
        if not is_ours:
            extra = draft.extra.value if draft.extra else {}
            path = None if draft.project_path is None else str(draft.project_path)
            return replace(event, payload=draft.payload.value, project_path=path, extra=extra, server_seq=None)
        if event.device_id != self.device_id:
            marked = {**(draft.extra.value if draft.extra else {}), SOURCE_DEVICE_FIELD: event.device_id}
            draft = replace(draft, extra=self.intake.redactor.clean_payload(marked))
        return draft
