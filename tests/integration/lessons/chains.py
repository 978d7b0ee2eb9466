"""Chains of tool calls by rule, in English and Chinese: an error and its cure; and controls without a cure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

OK: Final = 0


@dataclass(frozen=True, slots=True)
class ToolCall:
    command: str = ""
    exit_code: int = OK
    output: str = ""
    file_path: str = ""

    @property
    def tool_input(self) -> dict[str, Any]:
        return {"command": self.command} if self.command else {"file_path": self.file_path}

    @property
    def tool(self) -> str:
        return "Bash" if self.command else "Edit"


@dataclass(frozen=True, slots=True)
class Chain:
    """`cure`: what the lesson has to name."""

    name: str
    failing: ToolCall
    cure: ToolCall

    @property
    def cure_text(self) -> str:
        return self.cure.command or self.cure.file_path

    def solved(self) -> list[ToolCall]:
        """The error, a look, an attempt that did not help, the cure, and calls that went well."""
        again = replace(self.failing, exit_code=OK, output="done")
        return [*NOISE, self.failing, ToolCall("cat README.md"), self.failing, self.cure, again, *NOISE, again, *NOISE]

    def controls(self) -> Iterator[tuple[str, list[ToolCall]]]:
        """Calls from which nothing is to be learned."""
        looks = [ToolCall("git status"), ToolCall("cat setup.cfg"), ToolCall("ls -la src")]
        yield "nothing was changed", [self.failing, *looks * 4]
        yield "the error came back", [self.failing, self.cure, *looks, self.failing, *looks]
        yield "the user ended the call", [replace(self.failing, exit_code=130), self.cure, *looks * 4]
        yield "the call went well", [replace(self.failing, exit_code=OK), self.cure, *looks * 4]
        yield "the action shares no word", [self.failing, ToolCall("make zzz"), *looks * 4]
        yield "the action came too late", [self.failing, *looks * 3, looks[0], self.cure, *looks * 4]


NOISE: Final = (ToolCall("ls"), ToolCall("git status"))
_NAMES: Final = ("requests", "redis", "celery", "kafka-queue", "pandas")
_RULES: Final = (
    ("pytest -q", "Traceback:\nModuleNotFoundError: No module named '{0}'", "pip install {0}", ""),
    ("node app.js", "node:internal:933\nError: Cannot find module '{0}'\n  at x (a.js:3:4)", "npm install {0}", ""),
    ("go build ./...", "main.go:3:2: no required module provides package github.com/acme/{0}",
     "go get github.com/acme/{0}", ""),
    ("python app.py", "错误：找不到模块 “{0}”", "pip install {0}", ""),
    ("make start", "错误：无法连接到服务 {0}", "docker compose up -d {0}", ""),
    ("./run.sh", "异常：缺少配置 {0}", "", "config/{0}.toml"),
)  # fmt: skip
CHAINS: Final = tuple(
    Chain(
        f"{command}:{name}",
        ToolCall(command, 1, error.format(name)),
        ToolCall(cure.format(name), file_path=file_path.format(name)),
    )
    for name in _NAMES
    for command, error, cure, file_path in _RULES
)


def replayed_log() -> list[ToolCall]:
    """100 calls for which no lesson of the chains is right."""
    looks = [ToolCall(f"grep -n error log{number}.txt", OK, CHAINS[number % 30].failing.output) for number in range(40)]
    other = [
        ToolCall(command, 1, error.format(name))
        for name in ("numpy", "rabbit-broker", "sqlite-utils", "订单")
        for command, error, _, _ in _RULES
    ]
    near = [
        ToolCall("pytest -q", 1, "AssertionError: expected 'requests' to be called once"),
        ToolCall("pip install requests", 1, "ERROR: Could not find a version that satisfies the requirement requests"),
        ToolCall("make start", 2, "make: *** No rule to make target 'start'.  Stop."),
        ToolCall("npm install redis", 1, "npm ERR! code ERESOLVE\nnpm ERR! unable to resolve dependency tree"),
        ToolCall("docker compose up -d redis", 1, "Error: port is already allocated: 6379"),
        ToolCall("python app.py", 1, "错误：配置文件 “a.toml” 的第 3 行无效"),
    ] * 2
    calls = [*looks, *other, *near]
    return [*calls, *(ToolCall(f"ls dir{number}") for number in range(100 - len(calls)))]
