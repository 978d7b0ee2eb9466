"""Commands and files of tool calls: their keys, their shapes and their language. Standard library only."""

# ruff: noqa: E501 - long patterns
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from sync.lessons.error_text import KEY_DIGITS, errors_in

MAX_COMMAND: Final = 2_000  # characters
GENERAL: Final = "general"  # the language of an error that names none
FRONTEND: Final = "frontend"  # the file of errors in these languages
FRONTEND_LANGUAGES: Final = frozenset(
    {"javascript", "typescript", "vue", "react", "css", "html", "jsx", "tsx", "js", "ts"}
)

_LANGUAGE_OF_SUFFIX: Final[Mapping[str, str]] = {
    "py": "python", "pyi": "python", "ipynb": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript",
    "jsx": "javascript", "ts": "typescript", "tsx": "typescript", "vue": "vue", "go": "go", "rs": "rust", "java": "java",
    "kt": "kotlin", "swift": "swift", "c": "c", "h": "c", "cc": "c++", "cpp": "c++", "hpp": "c++", "cs": "c#",
    "rb": "ruby", "php": "php", "sql": "sql", "sh": "shell", "bash": "shell", "css": "css", "html": "html",
}  # fmt: skip
_LANGUAGE_OF_PROGRAM: Final[Mapping[str, str]] = {
    "python": "python", "python3": "python", "py": "python", "pytest": "python", "pip": "python", "pip3": "python",
    "uv": "python", "poetry": "python", "mypy": "python", "ruff": "python", "tox": "python", "node": "javascript",
    "npm": "javascript", "npx": "javascript", "pnpm": "javascript", "yarn": "javascript", "bun": "javascript",
    "jest": "javascript", "vitest": "javascript", "vite": "javascript", "tsc": "typescript", "tsx": "typescript",
    "go": "go", "cargo": "rust", "rustc": "rust", "java": "java", "javac": "java", "mvn": "java", "gradle": "java",
    "gradlew": "java", "dotnet": "c#", "gcc": "c", "clang": "c", "g++": "c++", "ruby": "ruby", "bundle": "ruby",
    "php": "php", "composer": "php", "swift": "swift",
}  # fmt: skip
_LANGUAGE_OF_TEXT: Final = (
    (re.compile(r"^Traceback \(most recent call last\)|^\s*File \"[^\"]+\", line \d+|\bModuleNotFoundError\b", re.MULTILINE), "python"),
    (re.compile(r"\berror TS\d{3,5}\b"), "typescript"),
    (re.compile(r"^\s+at .+\(?(?:node:|file:|/)?[^)]*\.(?:[cm]?js|tsx?):\d+|\bCannot read propert(?:y '|ies of )"
                r"|^(?:Uncaught )?(?:TypeError: .* is not (?:a function|iterable)|ReferenceError: .* is not defined)", re.MULTILINE), "javascript"),
    (re.compile(r"\berror\[E\d{4}\]|^\s*--> .+\.rs:\d+", re.MULTILINE), "rust"),
    (re.compile(r"\bException in thread \"|\b(?:java|javax|kotlin|org|com)(?:\.[a-z]\w*)*\.[A-Z]\w*(?:Exception|Error)\b|^\s+at [\w.$]+\([\w.]+\.java:\d+\)", re.MULTILINE), "java"),
    (re.compile(r"^(?:\./)?[\w./-]+\.go:\d+|^panic: |^goroutine \d+", re.MULTILINE), "go"),
)  # fmt: skip
_PYTHON_TYPES: Final = frozenset(
    [
        "ImportError",
        "ModuleNotFoundError",
        "AttributeError",
        "NameError",
        "IndentationError",
        "KeyError",
        "ValueError",
        "FileNotFoundError",
        "ZeroDivisionError",
        "UnicodeDecodeError",
        "UnicodeEncodeError",
        "RecursionError",
        "AssertionError",
        "OSError",
        "RuntimeError",
    ]
)
_WRAPPERS: Final = re.compile(r"^(?:(?:sudo|time|env|nohup|exec|command)\s+|\w+=\S*\s+|cd\s+\S+\s*(?:&&|;)\s*)+")
_WORD: Final = re.compile(r"[A-Za-z0-9][\w.+-]*")
_QUOTE: Final = re.compile(r"[\"'`$\\]")
_TEST_FILE: Final = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*|[^/]*[._-](?:test|spec)\.[^/]+)")  # as of insights
_OTHER_SUFFIXES: Final = frozenset({"md", "rst", "txt", "adoc", "json", "toml", "yaml", "yml", "xml", "ini", "cfg"})
_PYTHONS: Final = frozenset({"python", "python3", "py"})
_MODULES: Final = frozenset({"pytest", "unittest", "pip", "venv", "mypy", "ruff", "build", "tox"})
_SUBCOMMAND_PROGRAM_WORDS: Final = """
git npm pnpm yarn bun npx pip pip3 uv poetry cargo go docker podman kubectl helm make just dotnet mvn gradle
bundle composer brew apt apt-get terraform gh
"""
_WITH_SUBCOMMANDS: Final = frozenset(_SUBCOMMAND_PROGRAM_WORDS.split())
_SUBCOMMAND_WORDS: Final = """
add am apply apt audit bisect blame branch bench build cache check checkout cherry-pick ci clean clone commit
compose config cp create delete describe dev diff doc doctor down env exec export fetch fix fmt format freeze
generate get help image images info init inspect install kill lint list lock log login logs ls merge mod mv new
outdated pack package patch plan pr prune ps publish pull push rebase release remote remove reset restart restore
revert rm rollout run scale sed search serve show start stash status stop submodule sync switch tag test tidy tool
top tree uninstall up update upgrade venv verify version vet view volume why workspace worktree
"""
_SUBCOMMANDS: Final = frozenset(_SUBCOMMAND_WORDS.split())
_READ_ONLY: Final = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "less",
        "grep",
        "rg",
        "find",
        "pwd",
        "echo",
        "which",
        "where",
        "type",
        "stat",
        "wc",
        "tree",
        "diff",
        "file",
        "du",
        "df",
        "env",
        "printenv",
        "man",
        "help",
        "sed",
        "awk",
        "sort",
        "uniq",
        "jq",
        "date",
        "whoami",
        "ps",
    ]
)
_READ_ONLY_GIT: Final = frozenset(["status", "log", "diff", "show", "branch", "remote", "blame"])
EDIT_TOOLS: Final = frozenset(
    {"write", "edit", "multiedit", "strreplace", "applypatch", "apply_patch", "notebookedit", "search_replace"}
)


def command_of(tool_input: Any, *, limit: int | None = MAX_COMMAND) -> str:
    """The command of a call's input: a text, or its field `command`. Before redaction nothing may be cut."""
    if isinstance(tool_input, Mapping):
        value = tool_input.get("command") or tool_input.get("cmd") or tool_input.get("command_line")
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = " ".join(value)
    else:
        value = tool_input
    return value[:limit].strip() if isinstance(value, str) else ""


def file_path_of(tool_input: Any, *, limit: int | None = MAX_COMMAND) -> str:
    """The file that a call reads or edits; empty if it names none."""
    if not isinstance(tool_input, Mapping):
        return ""
    names = ("file_path", "path", "filePath", "target_file", "notebook_path")
    value = next((tool_input[name] for name in names if isinstance(tool_input.get(name), str)), "")
    return str(value).replace("\\", "/")[:limit]


def normalise_command(command: str) -> str:
    """The command without what goes before it (`sudo`, `cd x &&`, variables), in single spaces."""
    return " ".join(_WRAPPERS.sub("", command.strip()).split())[:MAX_COMMAND]


def command_key(command: str) -> str | None:
    """The key of a command; None without one."""
    text = normalise_command(command)
    return sha256(f"command\n{text}".encode(errors="surrogatepass")).hexdigest()[:KEY_DIGITS] if text else None


def command_shape(command: str) -> str:
    """The program, and its subcommand if both are known: `npm run build` as `npm run`. No other word is kept.

    It leaves the device: any other word may be a name, a host or a secret. Empty if a value before the program is quoted.
    """
    before = _WRAPPERS.match(command.strip())
    words = normalise_command(command).split()[:3]
    if not words or (before is not None and _QUOTE.search(before[0])):
        return ""
    program = words[0].replace("\\", "/").rsplit("/", 1)[-1]
    if not _WORD.fullmatch(program):
        return ""
    if program in _PYTHONS and words[1:2] == ["-m"] and words[2:3] and words[2] in _MODULES:
        return " ".join([program, *words[1:]])
    is_known = program in _WITH_SUBCOMMANDS and words[1:2] and words[1] in _SUBCOMMANDS
    return f"{program} {words[1]}" if is_known else program


def file_shape(file_path: str) -> str:
    """A file as `*.py`, or `test_*.py` if it is a test; `*` if its suffix is not known. It leaves the device."""
    if not file_path:
        return ""
    suffix = file_path.rpartition("/")[2].rpartition(".")[2].lower()
    is_known = suffix in _LANGUAGE_OF_SUFFIX or suffix in _OTHER_SUFFIXES
    return ("test_*" if _TEST_FILE.search(file_path) else "*") + (f".{suffix}" if is_known else "")


def is_edit(tool: str, file_path: str) -> bool:
    """Whether a call changes a file."""
    return bool(file_path) and tool.replace("_", "").lower() in {name.replace("_", "") for name in EDIT_TOOLS}


def changes_something(command: str) -> bool:
    """Whether a command may be a cure: one that only reads is not."""
    words = normalise_command(command).split()
    if not words:
        return False
    program = words[0].rsplit("/", 1)[-1]
    if program == "git":
        return len(words) > 1 and words[1] not in _READ_ONLY_GIT
    return program not in _READ_ONLY or ">" in command or " -i" in command


def is_risky(texts: Iterable[str]) -> bool:
    """Whether one of these commands or sentences downloads and runs something, deletes, or weakens security."""
    return any(form.search(text) for text in texts for form in _risky_forms())


@cache
def _risky_forms() -> tuple[re.Pattern[str], ...]:
    """By the form of a command. The file has the categories, where they come from, and examples of both sides."""
    groups = json.loads(files(__package__).joinpath("risky_commands.json").read_text("utf-8"))["forms"]
    return tuple(re.compile(form, re.IGNORECASE) for group in groups for form in group["forms"])


def language_of(*, command: str = "", file_path: str = "", text: str = "") -> str:
    """The language of an error: what its text shows, else that of the program, else that of the file."""
    shown = next((language for pattern, language in _LANGUAGE_OF_TEXT if pattern.search(text)), None)
    if shown is not None:
        return shown
    program = normalise_command(command).partition(" ")[0].rsplit("/", 1)[-1].removesuffix(".exe")
    suffix = file_path.rpartition(".")[2].lower()
    if program in _LANGUAGE_OF_PROGRAM:
        return _LANGUAGE_OF_PROGRAM[program]
    if suffix in _LANGUAGE_OF_SUFFIX:
        return _LANGUAGE_OF_SUFFIX[suffix]
    types = {error.type for error in errors_in(text)} if text else set()
    return "python" if types & _PYTHON_TYPES else GENERAL
