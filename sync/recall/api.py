"""Vectors from an OpenAI-compatible API that the user has named; nothing is sent anywhere unless he has.

What is sent is redacted text (`Meaning` cleans it), and the key comes from the environment or the keychain.
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
from sync.recall.embedder import Unembedded

if TYPE_CHECKING:
    from sync.cloud.http import Wire

REFUSED: Final = 400  # HTTP statuses from here on
LARGEST: Final = 8_192  # numbers of one vector; more is no model's
BYTES: Final = 4  # of one number
PROBE: Final = "a"  # what is sent to learn how long the model's vectors are


class ApiEmbedder:
    """`key` is asked at the first call: a keychain may take a moment. `timeout`: seconds of one request."""

    batch = 64

    def __init__(self, url: str, model: str, key: Callable[[], str | None], *, timeout: float) -> None:
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._key = key
        self._timeout = timeout
        self._wire: Wire | None = None
        self._headers: dict[str, str] = {}
        self._dimension = 0
        self._alone = asyncio.Lock()

    async def identity(self) -> str:
        if not self._dimension:
            await self.embed([PROBE], query=False)
        return f"{self._model} at {urlsplit(self._url).netloc.rpartition('@')[2]} ({self._dimension})"

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[bytes]:
        del query  # these models have one way for both
        vectors = await self._asked(texts)
        known, self._dimension = self._dimension, len(vectors[0]) // BYTES
        if known not in {0, self._dimension}:
            raise Unembedded("the API's vectors are of another length than before")
        return vectors

    async def close(self) -> None:
        if self._wire is not None:
            await self._wire.close()

    async def _asked(self, texts: Sequence[str]) -> list[bytes]:
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        try:
            wire = await self._opened()
            answer = await wire.told(wire.client.post(self._url, json=body, headers=self._headers))
            if answer.status_code >= REFUSED:
                raise Unembedded(f"the API answered {answer.status_code}")
            return _vectors(answer.json(), len(texts))
        except XiaobaiError as error:
            raise Unembedded(f"the API could not be asked ({error.kind})") from error
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise Unembedded(f"the answer holds no vectors ({type(error).__name__})") from error

    async def _opened(self) -> "Wire":
        async with self._alone:
            if self._wire is None:
                http: Any = await asyncio.to_thread(importlib.import_module, "sync.cloud.http")  # with httpx
                key = await asyncio.to_thread(self._key)
                self._headers = {"Authorization": f"Bearer {key}"} if key else {}
                self._wire = http.Wire(self._url, self._timeout)
            assert self._wire is not None
            return self._wire


def _vectors(told: Any, count: int) -> list[bytes]:
    rows = sorted(told["data"], key=lambda row: int(row["index"]))
    vectors = [array("f", row["embedding"]) for row in rows]
    lengths = {len(vector) for vector in vectors}
    if len(vectors) != count or len(lengths) != 1 or not 0 < lengths.pop() <= LARGEST:
        raise ValueError("not one vector for each text")
    if not all(isfinite(sum(vector)) for vector in vectors):
        raise ValueError("not a number")
    if sys.byteorder == "big":
        for vector in vectors:
            vector.byteswap()
    return [vector.tobytes() for vector in vectors]
