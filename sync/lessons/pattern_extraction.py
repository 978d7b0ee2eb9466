"""Names and signatures of a source file, as the structure of a pattern: never its code. Pure.

Python is parsed by `ast`. Of other languages, declarations are recognised by the beginning of their line.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any, Final

from sync.lessons.commands import language_of

MAX_NAMES: Final = 60  # in one pattern
_DECLARATIONS: Final = re.compile(
    r"^[ \t]*(?:export |default |public |private |protected |static |final |abstract |async |pub(?:\([^)]*\))? )*"
    r"((?:class|interface|enum|struct|trait|type|function|func|fn|record|impl)\s+[^{;=]{1,160}"
    r"|(?:const|let)\s+\w+\s*=\s*(?:async\s*)?\([^(){}=]{0,160}\)[^=;{]{0,80}=>)",
    re.MULTILINE,
)
_TYPES: Final = (
    ("testing", re.compile(r"(?:^|[/_.-])(?:tests?|spec)(?:[/_.-]|$)", re.IGNORECASE)),
    ("security", re.compile(r"auth|security|crypt|permission|token", re.IGNORECASE)),
    ("error-handling", re.compile(r"error|exception|retry|fallback", re.IGNORECASE)),
    ("api-design", re.compile(r"api|route|controller|endpoint|handler|response", re.IGNORECASE)),
)


def extract_pattern(path: str, source: str) -> dict[str, Any]:
    """A pattern's record from a source file, to be completed by the caller."""
    language = language_of(file_path=path)
    names = list(_python_names(source) if language == "python" else _declared_names(source))[:MAX_NAMES]
    stem = path.rpartition("/")[2]
    return {
        "type": next((name for name, pattern in _TYPES if pattern.search(path)), "structure"),
        "language": language,
        "name": stem.rpartition(".")[0] or stem,
        "description": "",
        "pattern": {"structure": "; ".join(names), "fields": _fields(source, language), "example_reference": path},
    }


def _python_names(source: str) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = ", ".join(ast.unparse(base) for base in node.bases)
            methods = [
                _signature(inner) for inner in node.body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            yield (
                f"class {node.name}({bases}): {', '.join(methods)}"
                if bases
                else f"class {node.name}: {', '.join(methods)}"
            )
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _signature(node)


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Names and annotations of the parameters, without their defaults."""
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    arguments = ", ".join(arg.arg + (f": {ast.unparse(arg.annotation)}" if arg.annotation else "") for arg in every)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({arguments}){returns}"


def _declared_names(source: str) -> Iterator[str]:
    for match in _DECLARATIONS.finditer(source):
        yield " ".join(match[1].split())


def _fields(source: str, language: str) -> list[str]:
    """The fields of a Python file's classes."""
    if language != "python":
        return []
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    fields = [inner.target for node in classes for inner in node.body if isinstance(inner, ast.AnnAssign)]
    return [target.id for target in fields if isinstance(target, ast.Name)][:MAX_NAMES]
