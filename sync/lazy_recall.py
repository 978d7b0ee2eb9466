"""Recall and context, loaded at their first use, and the embedder that the settings name."""

import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from sync.accounts.profiles import Profile
from sync.clock import Clock
from sync.errors import XiaobaiError
from sync.log.log import EventLog
from sync.redaction import Redactor
from sync.runtime.change_counter import ChangeCounter
from sync.settings.settings import Settings, read_embeddings_key
from sync.system.secret_store import open_secret_store

if TYPE_CHECKING:
    from sync.context.service import ContextService
    from sync.document.read.memory_service import MemoryService
    from sync.recall.search import RecallService
    from sync.recall.semantic.embedder import Embedder
    from sync.recall.semantic.vector_reader import VectorReader
    from sync.understanding.service import FactService

EMBEDDINGS_SERVICE: Final = "xiaobai-memory embeddings"  # the name of the API key's entry in the keychain
MODEL_LOAD_TIMEOUT: Final = 20.0  # seconds that an answer waits for models which load for it alone, commonly one

_log = logging.getLogger(__name__)


def recall(
    events: EventLog,
    clock: Clock,
    settings: Settings,
    profile: Profile,
    redactor: Redactor,
    stack: AsyncExitStack,
    *,
    moves: bool,
    vectors: ChangeCounter | None,
) -> "Callable[[], RecallService]":
    """Search by words and meaning; `stack` closes its models.

    `vectors` counts changes of the vectors; None for a single command, which does not load models.
    """

    @cache
    def opened() -> "RecallService":
        from sync.recall.index.extraction import LOCAL_KINDS  # noqa: PLC0415
        from sync.recall.search import RecallService  # noqa: PLC0415
        from sync.recall.semantic.semantic_index import SemanticIndex  # noqa: PLC0415 - at its first use

        leaves = settings.recall.embeddings == "api"
        clean = partial(_redact_or_drop, redactor.for_egress()) if leaves else str
        embedder = _embedder(settings, profile) if vectors is not None or leaves else None
        meaning = SemanticIndex(
            events.database,
            embedder,
            redact=clean,
            query_timeout=MODEL_LOAD_TIMEOUT,
            changed=vectors,
            hidden_kinds=LOCAL_KINDS if leaves else (),
        )
        stack.push_async_callback(meaning.close)
        return RecallService(events, clock, settings.recall, may_index=moves, semantic_index=meaning)

    return opened


def context(
    events: EventLog,
    memory: "MemoryService",
    recall_service: "Callable[[], RecallService]",
    fact_service: "Callable[[], FactService]",
    clock: Clock,
    settings: Settings,
) -> "Callable[[], ContextService]":
    """What a model is given."""

    @cache
    def opened() -> "ContextService":
        from sync.context.service import ContextService  # noqa: PLC0415 - at its first use

        return ContextService(events, memory, recall_service, fact_service, clock, settings.privacy.turn_block)

    return opened


def _embedder(settings: Settings, profile: Profile) -> "Embedder | None":
    from sync.recall.semantic.api_embedder import ApiEmbedder  # noqa: PLC0415 - at its first use
    from sync.recall.semantic.local_embedder import LocalEmbedder  # noqa: PLC0415

    options = settings.recall
    if options.embeddings == "api":
        assert options.embeddings_url is not None  # the settings check it
        assert options.embeddings_model is not None
        key = partial(_load_embeddings_key, settings, profile)
        return ApiEmbedder(options.embeddings_url, options.embeddings_model, key, timeout=settings.sync.timeout_seconds)
    if _has_local_model(settings):
        return LocalEmbedder()
    if options.embeddings == "local":
        _log.warning("there is no model: install the extra `embeddings`; recall searches by words")
    return None


def _has_local_model(settings: Settings) -> bool:
    from sync.recall.semantic import embedding_worker  # noqa: PLC0415 - at its first use

    return settings.recall.embeddings in {"auto", "local"} and embedding_worker.is_any_model_installed()


def _load_embeddings_key(settings: Settings, profile: Profile) -> str | None:
    """The key from the environment, else from the keychain."""
    if (key := read_embeddings_key(os.environ)) is not None:
        return key
    stored = open_secret_store(
        profile.folder / "embeddings-key",
        EMBEDDINGS_SERVICE,
        profile.name,
        prefer_file=settings.token_store == "file",  # noqa: S105 - the name of a place
    ).load()
    return None if stored is None else stored.decode("ascii", "ignore").strip() or None


def _redact_or_drop(redactor: Redactor, text: str) -> str:
    """The redacted text; empty if it cannot be examined, so that it stays on this device."""
    try:
        return redactor.clean(text)
    except XiaobaiError:
        return ""


def vector_export(settings: Settings, events: EventLog, vectors_changed: ChangeCounter) -> "VectorReader | None":
    """The stored vectors, if there are any."""
    if settings.recall.embeddings != "api" and not _has_local_model(settings):
        return None
    from sync.recall.semantic.vector_reader import VectorReader  # noqa: PLC0415 - at its first use

    return VectorReader(events.database, vectors_changed)
