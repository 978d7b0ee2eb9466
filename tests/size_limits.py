"""The ceilings of the house, where ruff has none: lines of a function, a module and a class, public methods of a class.

Medians do not tell good code from bad; maxima do. A ceiling is raised here only, with the reason beside the number.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FUNCTION_LINES: Final = 70
MODULE_LINES: Final = 440
CLASS_LINES: Final = 275
PUBLIC_METHODS: Final = 12
TEST_MODULE_LINES: Final = 720  # a test file is a list of sentences, read one at a time

Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_excesses(path: Path) -> Iterator[str]:
    """One line for each ceiling a file breaks."""
    source = path.read_text("utf-8")
    most = TEST_MODULE_LINES if path.parts[0] == "tests" else MODULE_LINES
    if source.count("\n") > most:
        yield f"{path}: {source.count(chr(10))} lines, at most {most}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function) and _lines(node) > FUNCTION_LINES:
            yield f"{path}:{node.lineno} {node.name}: {_lines(node)} lines, at most {FUNCTION_LINES}"
        if isinstance(node, ast.ClassDef):
            yield from _class_excesses(path, node)


def _class_excesses(path: Path, node: ast.ClassDef) -> Iterator[str]:
    if _lines(node) > CLASS_LINES:
        yield f"{path}:{node.lineno} {node.name}: {_lines(node)} lines, at most {CLASS_LINES}"
    public = [part for part in node.body if isinstance(part, Function) and not part.name.startswith("_")]
    if len(public) > PUBLIC_METHODS and path.parts[0] != "tests":  # a group of tests has no interface
        yield f"{path}:{node.lineno} {node.name}: {len(public)} public methods, at most {PUBLIC_METHODS}"


def _lines(node: Function | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def main(folders: list[str]) -> int:
    """Print every excess; 1 if there is one, 2 if no file was read."""
    files = [
        path for folder in folders for path in sorted(Path(folder).rglob("*.py")) if "node_modules" not in path.parts
    ]
    if not files:
        print("ceilings: no files found")
        return 2
    found = [line for path in files for line in find_excesses(path)]
    print("\n".join(found) if found else f"ceilings: {len(files)} files kept them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
