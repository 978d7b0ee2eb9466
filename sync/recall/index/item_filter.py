"""Which items a search may return, as conditions in SQL and in the term index. Pure."""

import json
from collections.abc import Collection
from typing import Any, Final

import msgspec
from msgspec.structs import replace

PROJECT_MARK: Final = "§"  # begins the term that names an item's project; no text has a term with it


class ItemFilter(msgspec.Struct, frozen=True):
    """Restricts a search; times in Unix milliseconds, `until_ms` exclusive.

    `id_bounds`: the first and last id of items in the time, if they are known.
    """

    project_ids: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    kinds: tuple[str, ...] = ()
    hidden_ids: tuple[str, ...] = ()  # entry ids
    id_bounds: tuple[int, int] | None = None

    @property
    def of_rows(self) -> "ItemFilter":
        """What only the rows of items say: projects are in the term index, and what is hidden leaves the results."""
        return replace(self, project_ids=(), hidden_ids=())

    @property
    def of_any_project(self) -> "ItemFilter":
        """The filter without its projects."""
        return replace(self, project_ids=())

    def where(self) -> tuple[str, list[Any]]:
        """SQL conditions on `i`, each preceded by `and`, and their parameters."""
        conditions: list[tuple[str, list[Any]]] = []
        if self.project_ids:
            conditions.append((f"i.project_id in ({_placeholders(self.project_ids)})", list(self.project_ids)))
        if self.since_ms is not None:
            conditions.append(("i.ts_ms >= ?", [self.since_ms]))
        if self.until_ms is not None:
            conditions.append(("i.ts_ms < ?", [self.until_ms]))
        if self.kinds:
            conditions.append((f"i.kind in ({_placeholders(self.kinds)})", list(self.kinds)))
        if self.hidden_ids:
            hidden = json.dumps(self.hidden_ids)
            conditions.append(("ifnull(i.entry_id, '') not in (select value from json_each(?))", [hidden]))
        parameters = [value for _, values in conditions for value in values]
        return "".join(f" and {text}" for text, _ in conditions), parameters

    def match(self, *terms: Collection[str]) -> str:
        """A full-text query for items of the projects that have one term of each group."""
        groups = (*terms, tuple(map(project_term, self.project_ids)))
        return " AND ".join(f"({' OR '.join(map(_quoted, group))})" for group in groups if group)


def project_term(project_id: str) -> str:
    """The term of all items of a project: searched with a word, it finds a small project's items in a large memory."""
    return PROJECT_MARK + project_id.encode(errors="surrogatepass").hex()


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _placeholders(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))
