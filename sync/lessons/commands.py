"""Commands and files of tool calls: their keys, their shapes and their language. Standard library only."""

# ruff: noqa: E501 - long patterns
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from sync.lessons.error_text import KEY_DIGITS, errors_in

MAX_COMMAND: Final = 2_000  # characters
GENERAL: Final = "general"  # the language of an error that names none
FRONTEND: Final = "frontend"  # the file of errors in these languages (seed 003)
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
    (re.compile(r"^\s+at .+\(?(?:node:|file:|/)?[^)]*\.(?:[cm]?js|tsx?):\d+", re.MULTILINE), "javascript"),
    (re.compile(r"\berror\[E\d{4}\]|^\s*--> .+\.rs:\d+", re.MULTILINE), "rust"),
    (re.compile(r"\bException in thread \"|^\s+at [\w.$]+\([\w.]+\.java:\d+\)", re.MULTILINE), "java"),
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
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z0-9:_-]*$")
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


def command_of(tool_input: Any) -> str:
    """The command of a call's input: a text, or its field `command`."""
    if isinstance(tool_input, Mapping):
        value = tool_input.get("command") or tool_input.get("cmd") or tool_input.get("command_line")
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = " ".join(value)
    else:
        value = tool_input
    return value[:MAX_COMMAND].strip() if isinstance(value, str) else ""


def file_path_of(tool_input: Any) -> str:
    """The file that a call reads or edits; empty if it names none."""
    if not isinstance(tool_input, Mapping):
        return ""
    names = ("file_path", "path", "filePath", "target_file", "notebook_path")
    value = next((tool_input[name] for name in names if isinstance(tool_input.get(name), str)), "")
    return str(value).replace("\\", "/")[:MAX_COMMAND]


def normalise_command(command: str) -> str:
    """The command without what goes before it (`sudo`, `cd x &&`, variables), in single spaces."""
    return " ".join(_WRAPPERS.sub("", command.strip()).split())[:MAX_COMMAND]


def command_key(command: str) -> str | None:
    """The key of a command; None without one."""
    text = normalise_command(command)
    return sha256(f"command\n{text}".encode(errors="surrogatepass")).hexdigest()[:KEY_DIGITS] if text else None


def command_shape(command: str) -> str:
    """The program and its subcommand, `npm run build` as `npm run`: no names, no values."""
    words = normalise_command(command).split()[:3]
    if not words:
        return ""
    program = words[0].rsplit("/", 1)[-1]
    if not _WORD.fullmatch(program):
        return ""
    return " ".join([program, *(word for word in words[1:2] if _SUBCOMMAND.fullmatch(word))])


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
