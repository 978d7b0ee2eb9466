"""How long redaction takes: `python -m tests.bench.bench_redaction`.

Prints milliseconds for 10 kB of three kinds of text, and as a multiple of a floor that reads every character once
(`str.translate`), so that numbers from different machines can be compared. Then a megabyte, to see that time grows
with the text and no faster.
"""

from collections.abc import Callable, Iterator
from time import perf_counter

from sync.redaction import Redactor
from tests.bench.measurement import Measurement

SIZE = 10_000
ROUNDS = 20
TALK = "今天我们讨论了记忆的格式，用户希望每天早上八点提醒他开会；The user prefers short answers and dark themes。"
NOTES = (
    "## 计划\n- token 的有效期是 3600 秒，见 https://docs.example.com/auth?x=1#y\n- `api.key` 放在 config/app.toml 里\n"
)
DENSE = "电话 138-1234-5678，邮箱 li.si@example.com，密码：abc12345，password = hunter22；订单 20261121000134\n"


def sized(text: str, size: int = SIZE) -> str:
    return (text * (size // len(text) + 1))[:size]


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The fastest of `rounds`, in milliseconds."""
    times = []
    for _ in range(rounds):
        begun = perf_counter()
        work()
        times.append(perf_counter() - begun)
    return min(times) * 1000


def rows() -> Iterator[Measurement]:
    """What `make bench` says: the text that is full of what has to go is the slowest."""
    redactor, text = Redactor(), sized(DENSE)
    redactor.clean(sized(DENSE, 500))
    seconds = best(lambda: redactor.clean(text))
    yield Measurement(
        "redaction of 10 kB", seconds, "ms", best(lambda: text.translate({0: None})), "<= 20 ms", seconds <= 20
    )


def main() -> None:
    begun = perf_counter()
    redactor = Redactor()
    print(f"construction            {(perf_counter() - begun) * 1000:8.2f} ms")
    begun = perf_counter()
    redactor.clean(sized(DENSE, 500))
    print(f"first text              {(perf_counter() - begun) * 1000:8.2f} ms")
    for name, sample in (("talk", TALK), ("notes", NOTES), ("dense", DENSE)):
        text = sized(sample)
        floor = best(lambda text=text: text.translate({0: None}))  # type: ignore[misc]
        seconds = best(lambda text=text: redactor.clean(text))  # type: ignore[misc]
        print(f"{name:<8} 10 kB          {seconds:8.2f} ms  {seconds / floor:6.0f} x the floor of {floor:.3f} ms")
    for name, sample in (("talk", TALK), ("dense", DENSE), ("digits", "1 3 8 0 "), ("letters", "aB3")):
        text = sized(sample, 1_000_000)
        seconds = best(lambda text=text: redactor.clean(text), rounds=1)  # type: ignore[misc]
        print(f"{name:<8} 1 MB           {seconds:8.0f} ms")


if __name__ == "__main__":
    main()
