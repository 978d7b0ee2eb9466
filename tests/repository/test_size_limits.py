"""The checks of `tests.size_limits` find what they are for."""

from pathlib import Path

from tests.size_limits import find_excesses


def test_a_class_name_occurs_once_in_the_product() -> None:
    sources = {Path("sync/a.py"): "class Page: ...", Path("bridge/b.py"): "class Page: ..."}
    assert list(find_excesses(sources)) == ["class Page is defined more than once: sync/a.py, bridge/b.py"]
    assert not list(find_excesses({Path("sync/a.py"): "class Page: ...", Path("tests/b.py"): "class Page: ..."}))


def test_a_folder_holds_fifteen_modules_and_its_init() -> None:
    sources = {Path(f"sync/m{number}.py"): "" for number in range(15)} | {Path("sync/__init__.py"): ""}
    assert not list(find_excesses(sources))
    assert list(find_excesses(sources | {Path("sync/more.py"): ""})) == ["sync: 16 modules, at most 15"]


def test_functions_classes_and_modules_are_bounded() -> None:
    body = "    x = 1\n"
    assert not list(find_excesses({Path("sync/a.py"): "def f():\n" + body * 49}))
    (function,) = find_excesses({Path("sync/a.py"): "def f():\n" + body * 50})
    assert function == "sync/a.py:1 f: 51 lines, at most 50"
    (klass,) = find_excesses({Path("sync/a.py"): "class C:\n" + body * 250})
    assert klass == "sync/a.py:1 C: 251 lines, at most 250"
    (module,) = find_excesses({Path("sync/a.py"): "x = 1\n" * 401})
    assert module == "sync/a.py: 401 lines, at most 400"
