"""Make `word-classes-{zh,en}.txt`: `python -m tests.fit_understanding.word_classes`; seldom needed.

The most frequent words of wordfreq (data CC BY-SA 4.0, see NOTICE.md) in classes of similar meaning, one set for both
languages: k-means over the vectors of the packaged sentence encoder. Needs the extra `embeddings` and `wordfreq`.
"""

import re
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sync.recall.semantic.embedding_worker import MODELS, load_encoder

FOLDER: Final = Path(__file__).parent
COUNTS: Final = {"zh": 12_000, "en": 12_000}
FORMS: Final = {"zh": re.compile("[\u3400-\u9fff]{1,4}"), "en": re.compile("[a-z][a-z']*")}
COARSE: Final = 160
FINE: Final = 15  # words of a fine class, about
MOST_FINE: Final = 9  # fine classes of a coarse one
ROUNDS: Final = 25
BATCH: Final = 64

Floats = NDArray[np.float32]


def main() -> None:
    from wordfreq import top_n_list  # noqa: PLC0415 - 57 MB, only for this script

    words = {
        language: [word for word in top_n_list(language, 2 * count) if FORMS[language].fullmatch(word)][:count]
        for language, count in COUNTS.items()
    }
    every = [word for of in words.values() for word in of]
    vectors = _vectors(every)
    coarse = _k_means(vectors, COARSE)
    names = [""] * len(every)
    for number in range(COARSE):
        members = np.flatnonzero(coarse == number)
        fine = _k_means(vectors[members], max(1, min(MOST_FINE, len(members) // FINE)))
        for member, part in zip(members, fine, strict=True):
            names[member] = f"{number:03d}{part}"
    at = 0
    for language, of in words.items():
        lines = (f"{word} {name}\n" for word, name in zip(of, names[at : at + len(of)], strict=True))
        (FOLDER / f"word-classes-{language}.txt").write_text("".join(lines), "utf-8")
        at += len(of)


def _vectors(texts: list[str]) -> Floats:
    encode = load_encoder(MODELS[1])
    assert encode is not None, "install the extra `embeddings`"
    parts: list[Any] = [np.asarray(encode(texts[at : at + BATCH], False)) for at in range(0, len(texts), BATCH)]
    vectors: Floats = np.concatenate(parts).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _k_means(vectors: Floats, count: int) -> NDArray[np.int64]:
    """The class of each vector: Lloyd's rounds from vectors chosen by chance."""
    generator = np.random.default_rng(0)
    centres = vectors[generator.choice(len(vectors), count, replace=False)]
    nearest = np.zeros(len(vectors), dtype=np.int64)
    for _ in range(ROUNDS):
        nearest = np.argmax(vectors @ centres.T - 0.5 * (centres**2).sum(axis=1), axis=1)
        for number in range(count):
            members = vectors[nearest == number]
            if len(members):
                centres[number] = members.mean(axis=0)
    return nearest


if __name__ == "__main__":
    main()
