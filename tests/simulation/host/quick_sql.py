"""SQL on a simulated machine: what a statement comes to is worked out once, and then asked of the driver directly.

A history runs two thousand statements, nearly all of them constants of the program. Around one SQLAlchemy takes several
times as long as SQLite within it, and that was a fifth of what a simulation took. Here a statement that comes again is
sent as SQLAlchemy compiled it the first time, and its rows are answered with no more than the program asks of them;
anything else raises AttributeError. Errors become SQLAlchemy's own, and whatever is out of the ordinary (an
option, RETURNING, a transaction that is over) goes through it as ever. `test_statements.py` compares the two.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from sqlalchemy import ClauseElement
from sqlalchemy.exc import MultipleResultsFound, NoResultFound
from sqlalchemy.sql.compiler import SQLCompiler

from sync.db.engine import Transaction

Names = tuple[str, ...]
Values = Mapping[str, Any]
Processors = Mapping[str, Callable[[Any], Any]]


class NoRowsResult(NamedTuple):
    """The result of a statement without rows."""

    rowcount: int
    lastrowid: int | None


class _RowValues(list[Any]):
    """The rows of a result, as mappings or as values."""

    def all(self) -> Sequence[Any]:
        return self

    def first(self) -> Any:
        return self[0] if self else None

    def one(self) -> Any:
        if len(self) != 1:
            raise (MultipleResultsFound if self else NoResultFound)(f"{len(self)} rows were found, not one")
        return self[0]


class _RowsResult:
    """A result with rows; their number is unknown before they are read."""

    rowcount: Final = -1

    def __init__(self, shape: Any, rows: list[tuple[Any, ...]]) -> None:
        """`shape`: a named tuple with the names of the columns."""
        self._shape = shape
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.all())

    def all(self) -> Sequence[Any]:
        return [self._shape._make(row) for row in self._rows]

    def first(self) -> Any:
        return self._shape._make(self._rows[0]) if self._rows else None

    def one(self) -> Any:
        return self._shape._make(_RowValues(self._rows).one())

    def scalar(self) -> Any:
        return self._rows[0][0] if self._rows else None

    def scalar_one(self) -> Any:
        return _RowValues(self._rows).one()[0]

    def scalars(self) -> _RowValues:
        return _RowValues(row[0] for row in self._rows)

    def mappings(self) -> _RowValues:
        names = self._shape._fields
        return _RowValues(dict(zip(names, row, strict=True)) for row in self._rows)


@dataclass(slots=True)
class _BoundStatement:
    """SQL with question marks, and the parameters in order."""

    sql: str
    in_order: Callable[[Values], Sequence[Any]]
    fixed: Values  # of the statement itself
    expanded: Mapping[str, Sequence[str]]  # a list's name: the names of its items
    processors: Processors  # what a type makes of its values, and which ones it refuses, as bytes refuse text
    shape: Any = None  # of its rows

    def values(self, given: Values) -> Sequence[Any]:
        if not self.fixed and not self.expanded and not self.processors:
            return self.in_order(given)
        every = {**self.fixed, **given}
        for name, process in self.processors.items():
            every[name] = process(every[name])
        for name, items in self.expanded.items():
            every.update(zip(items, given[name], strict=True))
        return self.in_order(every)


@dataclass(slots=True)
class _StatementTemplate:
    """A statement with parameters of certain names; it is another one for lists of another length."""

    compiled: SQLCompiler
    fixed: Values
    lists: Names
    processors: Processors
    sent: dict[tuple[int, ...], _BoundStatement] = field(default_factory=dict)

    def for_lengths(self, given: Values) -> _BoundStatement:
        lengths = tuple([len(given[name]) for name in self.lists])
        if lengths not in self.sent:
            state = self.compiled.construct_expanded_state({**self.fixed, **given})
            expanded = {name: state.parameter_expansion[name] for name in self.lists}
            names = tuple(state.positiontup or ())
            self.sent[lengths] = _BoundStatement(state.statement, _getter(names), self.fixed, expanded, self.processors)
        return self.sent[lengths]


class _Statement(NamedTuple):
    """A repeated statement; None if it has to use SQLAlchemy."""

    itself: ClauseElement
    by_names: dict[Names, _StatementTemplate | None]


_ONCE: Final[WeakSet[ClauseElement]] = WeakSet()  # most of those that came once never come again
_KNOWN: Final[dict[int, _Statement]] = {}  # by `id`, which nothing else bears while it is held here


class QuickConnection(Transaction):
    """A connection for an engine's `_connection_cls`."""

    @cached_property
    def driver(self) -> Any:
        """What SQLAlchemy looks up at each statement; it stays the same for as long as this one is open."""
        return self.connection.driver_connection

    def execute(self, statement: Any, parameters: Any = None, *, execution_options: Any = None) -> Any:
        known = _KNOWN.get(id(statement))
        if known is None:
            if statement in _ONCE:
                _KNOWN[id(statement)] = _Statement(statement, {})
            _ONCE.add(statement)
        elif execution_options is None and self._is_under_way():
            many = isinstance(parameters, list)
            first: Values = (parameters[0] if many else parameters) or {}
            names = tuple(first)
            if names not in known.by_names:
                known.by_names[names] = self._template_of(statement, first)
            if (found := known.by_names[names]) is not None and not (many and found.lists):
                return self._run_bound(found.for_lengths(first), parameters if many else None, first)
        return super().execute(statement, parameters, execution_options=execution_options)

    def _is_under_way(self) -> bool:
        whole, nested = self._transaction, self._nested_transaction
        return whole is not None and whole.is_active and (nested is None or nested.is_active)

    def _run_bound(self, sent: _BoundStatement, many: Sequence[Values] | None, one: Values) -> Any:
        driver: sqlite3.Connection = self.driver
        values: Any = None
        try:
            values = sent.values(one) if many is None else [sent.values(each) for each in many]
            cursor = driver.execute(sent.sql, values) if many is None else driver.executemany(sent.sql, values)
            if cursor.description is None:
                return NoRowsResult(cursor.rowcount, cursor.lastrowid)
            rows = cursor.fetchall()
        except (sqlite3.Error, TypeError, ValueError) as error:  # the last two: a value that its type refuses
            self._handle_dbapi_exception(error, sent.sql, values, None, None)
        if sent.shape is None:
            sent.shape = _shape([column[0] for column in cursor.description])
        return _RowsResult(sent.shape, rows)

    def _template_of(self, statement: Any, given: Values) -> _StatementTemplate | None:
        compiled: Any = statement.compile(dialect=self.dialect, column_keys=sorted(given))
        required = {bind.key for bind in compiled.binds.values() if bind.required}
        if not required <= given.keys() <= compiled.binds.keys():
            return None
        if statement.get_execution_options() or compiled.effective_returning:
            return None
        lists = tuple(name for name in given if compiled.binds[name].expanding)
        if len(compiled.post_compile_params) > len(lists) or compiled.literal_execute_params:
            return None  # a list within the statement itself
        processors = compiled._bind_processors
        if not processors.keys().isdisjoint(lists):
            return None  # each item of a list would be processed by itself
        everything = compiled.construct_params(given)
        fixed = {name: value for name, value in everything.items() if name not in given}
        return _StatementTemplate(compiled, fixed, lists, processors)


def _shape(columns: Sequence[str]) -> Any:
    make: Any = namedtuple  # noqa: PYI024 - its fields are not known before
    return make("Row", columns, rename=True)


def _getter(names: Names) -> Callable[[Values], Sequence[Any]]:
    """As `itemgetter`, which answers something else for one name, and nothing for none."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: [values[name] for name in names]
