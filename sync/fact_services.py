"""The facts of a profile, and the language model that finds some of them: loaded at their first use."""

import asyncio
import importlib
import os
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from sync.accounts.profiles import Profile
from sync.clock import Clock
from sync.db.engine import Transaction
from sync.log.devices import store as registry_store
from sync.log.event_types import FACT_TYPES
from sync.log.log import EventLog
from sync.redaction import Redactor
from sync.settings.settings import Settings, read_model_key
from sync.system.secret_store import open_secret_store

if TYPE_CHECKING:
    from sync.document.read.memory_service import MemoryService
    from sync.log.devices.changes_json import ChangesJson
    from sync.understanding.second_reader.model_extraction import ModelExtraction
    from sync.understanding.second_reader.model_port import LanguageModel, ModelStatus
    from sync.understanding.service import FactService

RULES_DELAY: Final = 1.5  # seconds after a start; the first answers do not wait for the rules
KEY_SERVICE: Final = "xiaobai-memory model"  # the name of the API key's entry in the keychain


def facts(events: EventLog, redactor: Redactor, clock: Clock) -> "Callable[[], FactService]":
    """Facts about the user and their projects."""

    @cache
    def opened() -> "FactService":
        from sync.understanding.service import FactService  # noqa: PLC0415 - at its first use

        return FactService(events, redactor, clock)

    return opened


async def foreign_changes(
    events: EventLog, fact_service: "Callable[[], FactService]"
) -> "tuple[ChangesJson | None, int]":
    """What devices changed in the facts of others, None with one device; and how many facts have no proved origin."""
    registry = await events.database.read(registry_store.read_registry)
    has_facts = bool(await events.newest_position(FACT_TYPES))
    if not has_facts and len(registry.devices) < 2:
        return None, 0
    from sync.understanding import store  # noqa: PLC0415 - a guest without facts does not pay for it

    def concerns(connection: Transaction) -> tuple[bool, bool]:
        has_foreign = store.has_foreign_facts(connection, events.own_device_ids)
        return len(registry.devices) > 1 or has_foreign, store.has_facts_of_before(connection)

    has_others, has_old_facts = await events.database.read(concerns)
    changes = await fact_service().changes.list() if has_others else None
    return changes, await fact_service().changes.count_unproved() if has_old_facts else 0


def model_extraction(
    events: EventLog, redactor: Redactor, fact_service: "Callable[[], FactService]", clock: Clock
) -> "Callable[[], ModelExtraction]":
    """The exchanges that wait for a language model."""

    @cache
    def opened() -> "ModelExtraction":
        from sync.understanding.second_reader.model_extraction import ModelExtraction  # noqa: PLC0415 - if a model is offered

        return ModelExtraction(events, redactor, fact_service().projection, clock)

    return opened


class ModelAccess:
    """The language model of an open application: offered by the client, or named by the settings, or none."""

    def __init__(
        self,
        extraction: "Callable[[], ModelExtraction]",
        memory_service: "MemoryService",
        settings: Settings,
        profile: Profile,
    ) -> None:
        self._extraction = extraction
        self._memory_service = memory_service
        self._settings = settings
        self._profile = profile
        self._offered = asyncio.Event()

    def offer(self, model: "LanguageModel", *, source: str, max_calls_per_day: int) -> None:
        """Have this model find facts in the background. A model that the settings name is not replaced."""
        if source == "client" and self._settings.model.url is not None:
            return
        extraction = self._extraction()
        extraction.offer(model, source=source, max_calls_per_day=max_calls_per_day)
        self._memory_service.on_exchange = extraction.add
        self._offered.set()

    async def status(self) -> "ModelStatus | None":
        """What the model cost today; None if none was offered."""
        return await self._extraction().status() if self._offered.is_set() else None

    async def run(self) -> None:
        """Compile the rules for the first exchange, then ask the model from its offer on, until cancelled."""
        await asyncio.sleep(RULES_DELAY)
        for module in ("sync.understanding.capture", "sync.understanding.reading.reader"):
            await asyncio.to_thread(importlib.import_module, module)
        options = self._settings.model
        if options.url is not None and not self._offered.is_set():
            model = await asyncio.to_thread(_api_model, self._settings, self._profile)
            self.offer(model, source="api", max_calls_per_day=options.max_calls_per_day)
        await self._offered.wait()
        await self._extraction().run()


def _api_model(settings: Settings, profile: Profile) -> "LanguageModel":
    """The model that the settings name."""
    from sync.understanding.second_reader.api_model import ApiModel  # noqa: PLC0415 - only if the settings name one

    assert settings.model.url is not None  # the caller checks it
    assert settings.model.model is not None  # the settings check it
    return ApiModel(settings.model.url, settings.model.model, partial(_load_key, settings, profile))


def _load_key(settings: Settings, profile: Profile) -> str | None:
    """The key from the environment, else from the keychain."""
    if (key := read_model_key(os.environ)) is not None:
        return key
    path, prefer_file = profile.folder / "model-key", settings.token_store == "file"  # noqa: S105 - the name of a place
    stored = open_secret_store(path, KEY_SERVICE, profile.name, prefer_file=prefer_file).load()
    return None if stored is None else stored.decode("ascii", "ignore").strip() or None
