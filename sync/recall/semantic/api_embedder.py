"""Vectors from an OpenAI-compatible API that the user has configured.

Texts are redacted before (`SemanticIndex`). The key comes from the environment or the keychain.
"""

import asyncio
import importlib
import sys
from array import array
from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sync.errors import XiaobaiError
from sync.recall.semantic.embedder import EmbeddingFailed

if TYPE_CHECKING:
    from sync.cloud.supabase.http_client import HttpClient

FIRST_ERROR_STATUS: Final = 400
MAX_DIMENSION: Final = 8_192  # no model has longer vectors
FLOAT_BYTES: Final = 4
PROBE_TEXT: Final = "a"  # sent to learn the length of the model's vectors


class ApiEmbedder:
    """`read_key` is called at the first request, because a keychain is slow. `timeout`: of one request."""

    batch = 64

    def __init__(self, url: str, model: str, read_key: Callable[[], str | None], *, timeout: float) -> None:
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._read_key = read_key
        self._timeout = timeout
        self._client: HttpClient | None = None
        self._headers: dict[str, str] = {}
        self._dimension = 0
        self._lock = asyncio.Lock()

    @property
    def is_ready(self) -> bool:
        return True

    async def identity(self) -> str:
        if not self._dimension:
            await self.embed([PROBE_TEXT], query=False)
        return f"{self._model} at {urlsplit(self._url).netloc.rpartition('@')[2]} ({self._dimension})"

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[bytes]:
        del query  # these models embed both in the same way
        vectors = await self._request(texts)
        former, self._dimension = self._dimension, len(vectors[0]) // FLOAT_BYTES
        if former not in {0, self._dimension}:
            raise EmbeddingFailed("the API's vectors are of another length than before")
        return vectors

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _request(self, texts: Sequence[str]) -> list[bytes]:
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        try:
            wire = await self._open_client()
            answer = await wire.await_reply(wire.client.post(self._url, json=body, headers=self._headers))
            if answer.status_code >= FIRST_ERROR_STATUS:
                raise EmbeddingFailed(f"the API answered {answer.status_code}")
            return _parse_vectors(answer.json(), len(texts))
        except XiaobaiError as error:
            raise EmbeddingFailed(f"the API could not be asked ({error.kind})") from error
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise EmbeddingFailed(f"the answer holds no vectors ({type(error).__name__})") from error

    async def _open_client(self) -> "HttpClient":
        async with self._lock:
            if self._client is None:
                http: Any = await asyncio.to_thread(
                    importlib.import_module, "sync.cloud.supabase.http_client"
                )  # with httpx
                key = await asyncio.to_thread(self._read_key)
                self._headers = {"Authorization": f"Bearer {key}"} if key else {}
                self._client = http.HttpClient(self._url, self._timeout)
            assert self._client is not None
            return self._client


def _parse_vectors(reply: Any, count: int) -> list[bytes]:
    rows = sorted(reply["data"], key=lambda row: int(row["index"]))
    vectors = [array("f", row["embedding"]) for row in rows]
    lengths = {len(vector) for vector in vectors}
    if len(vectors) != count or len(lengths) != 1 or not 0 < lengths.pop() <= MAX_DIMENSION:
        raise ValueError("not one vector for each text")
    if not all(isfinite(sum(vector)) for vector in vectors):
        raise ValueError("not a number")
    if sys.byteorder == "big":
        for vector in vectors:
            vector.byteswap()
    return [vector.tobytes() for vector in vectors]
