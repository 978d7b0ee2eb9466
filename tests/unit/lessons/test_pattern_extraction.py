"""A pattern of a source file has names and signatures, and no line of its code."""

from sync.lessons.pattern_extraction import extract_pattern

PYTHON = """
import os
TOKEN = "canary"
class ApiResponse(Base):
    success: bool
    def wrap(self, data: dict, retries: int = 4711) -> str:
        return "canary"
async def fetch(url: str) -> None: ...
"""
TYPESCRIPT = """
const total = (1 + 2) * canary;
export const login = async (user: string): Promise<void> => { canary() }
export default class Session extends Base { canary }
export function logout(): void { canary() }
"""


def test_python_is_parsed() -> None:
    pattern = extract_pattern("src/api/response.py", PYTHON)
    assert (pattern["type"], pattern["language"], pattern["name"]) == ("api-design", "python", "response")
    shown = "class ApiResponse(Base): wrap(self, data: dict, retries: int) -> str; fetch(url: str) -> None"
    assert pattern["pattern"]["structure"] == shown
    assert pattern["pattern"]["fields"] == ["success"]


def test_declarations_of_other_languages_are_found_at_the_beginning_of_their_line() -> None:
    pattern = extract_pattern("src/auth/session.ts", TYPESCRIPT)
    assert (pattern["type"], pattern["language"]) == ("security", "typescript")
    shown = "const login = async (user: string): Promise<void> =>; class Session extends Base; function logout(): void"
    assert pattern["pattern"]["structure"] == shown


def test_a_file_that_is_no_python_has_no_structure() -> None:
    assert extract_pattern("a.py", "def (")["pattern"] == {"structure": "", "fields": [], "example_reference": "a.py"}
