"""Limits that ruff does not check: sizes of functions, modules, classes and folders, and unique class names.

A limit is raised here only, with the reason beside the number.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

FUNCTION_LINES: Final = 50
MODULE_LINES: Final = 400
CLASS_LINES: Final = 250
PUBLIC_METHODS: Final = 12
FOLDER_MODULES: Final = 15
TEST_MODULE_LINES: Final = 700  # a test file is a list of independent cases

Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_excesses(sources: Mapping[Path, str]) -> Iterator[str]:
    """One line for each limit that the files, given by their paths, exceed."""
    folders, classes = defaultdict[Path, int](int), defaultdict[str, list[Path]](list)
    for path, source in sources.items():
        tree = ast.parse(source)
        yield from _file_excesses(path, source, tree)
        folders[path.parent] += path.name != "__init__.py"
        if not _is_test(path):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    classes[node.name].append(path)
    for folder, count in folders.items():
        if count > FOLDER_MODULES:
            yield f"{folder}: {count} modules, at most {FOLDER_MODULES}"
    for name, paths in classes.items():
        if len(paths) > 1:
            yield f"class {name} is defined more than once: {', '.join(map(str, paths))}"


def _file_excesses(path: Path, source: str, tree: ast.Module) -> Iterator[str]:
    most = TEST_MODULE_LINES if _is_test(path) else MODULE_LINES
    if source.count("\n") > most:
        yield f"{path}: {source.count(chr(10))} lines, at most {most}"
    for node in ast.walk(tree):
        if isinstance(node, Function) and _line_count(node) > FUNCTION_LINES:
            yield f"{path}:{node.lineno} {node.name}: {_line_count(node)} lines, at most {FUNCTION_LINES}"
        if isinstance(node, ast.ClassDef):
            yield from _class_excesses(path, node)


def _class_excesses(path: Path, node: ast.ClassDef) -> Iterator[str]:
    if _line_count(node) > CLASS_LINES:
        yield f"{path}:{node.lineno} {node.name}: {_line_count(node)} lines, at most {CLASS_LINES}"
    public = [part for part in node.body if isinstance(part, Function) and not part.name.startswith("_")]
    if len(public) > PUBLIC_METHODS and not _is_test(path):  # a group of tests has no interface
        yield f"{path}:{node.lineno} {node.name}: {len(public)} public methods, at most {PUBLIC_METHODS}"


def _is_test(path: Path) -> bool:
    return path.parts[0] == "tests"


def _line_count(node: Function | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def main(folders: list[str]) -> int:
    """Print every excess. Exit status 1 if there is one, 2 if no file was found: such a check has not passed."""
    paths = [path for folder in folders for path in sorted(Path(folder).rglob("*.py"))]
    sources = {path: path.read_text("utf-8") for path in paths if "node_modules" not in path.parts}
    if not sources:
        print("size limits: no files found")
        return 2
    excesses = list(find_excesses(sources))
    print("\n".join(excesses) if excesses else f"size limits: {len(sources)} files are within them")
    return 1 if excesses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
