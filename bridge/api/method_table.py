"""The methods table: name, parameter type and function. Every interface calls through it, so all behave alike.

Decisions that live here
    * Parameters come by name. A positional array is refused: adding a parameter would silently shift its neighbours.
    * An unknown parameter is an error that names it; a misspelt option must never be silently without effect.
    * Wire names are camelCase, Python names are snake_case; only `Params` renames.
    * Cancellation arrives as `asyncio.CancelledError`, as everywhere in asyncio; what must not be torn goes under
      `asyncio.shield`. `Context.cancelled` is for code that runs in a thread and can only look.
    * Notifications are hints ("look again"), never the only way of a fact: the newest of a method replaces an older one
      that the client has not had room for.
"""

import asyncio
import functools
import importlib
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from sync.errors import InvalidInput
from sync.texts.language import Language

App = TypeVar("App")
P = TypeVar("P", bound=msgspec.Struct)

DEFAULT_TIMEOUT: Final = 60.0  # seconds; longer than any network deadline below it, so that the error names the cause
MAX_MESSAGE_CHARS: Final = 300  # characters of an error about parameters; a value quoted in it stays short


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of every params type. Subclasses inherit all of it except `kw_only`."""


class NoParams(Params, frozen=True):
    """For methods that take nothing."""


class Notify(Protocol):
    """Send a notification. Never blocks, never fails; without a client it does nothing."""

    def __call__(self, method: str, params: object = None, /) -> None: ...


def no_notifications(method: str, params: object = None, /) -> None:
    """The `Notify` of an interface without a listening client: the command line, a test."""


class RequestClient(Protocol):
    """Send a request to the client and return the result of its response. Raises ClientRequestFailed."""

    async def __call__(self, method: str, params: object, /, *, within: float) -> object: ...


class ClientRequestFailed(Exception):
    """The client did not answer a request, or answered with an error. The message has no content of the client's."""


async def no_client(method: str, params: object, /, *, within: float) -> object:
    """The `RequestClient` of an interface without a client."""
    del params, within
    raise ClientRequestFailed(f"no client answers {method}")


def no_parent_watch(pid: int, /) -> None:
    """The parent watch of an interface that ends with its command."""


class Context(msgspec.Struct, Generic[App]):
    """What a method knows about its call: the application, how to notify the caller, the time that is left."""

    app: App
    notify: Notify = no_notifications
    deadline: float | None = None  # seconds of the running loop's clock; None without a limit
    watch_parent: Callable[[int], None] = no_parent_watch  # `initialize` gives the pid whose end also ends this process
    request_client: RequestClient = no_client
    answer_in: Callable[[Language], None] = lambda _: None  # `initialize` gives the language of errors from now on
    cancelled: bool = msgspec.field(default=False)  # readable from any thread

    def report_progress(self, token: str | int, value: object) -> None:
        """`$/progress` for a token that the caller chose."""
        self.notify("$/progress", {"token": token, "value": value})

    def progress_reporter(self, token: str, title: str) -> Callable[[int, int], None]:
        """A callback for what is done of a total."""
        return lambda done, total: self.report_progress(
            token, {"kind": "report", "title": title, "done": done, "total": total}
        )

    def remaining(self) -> float | None:
        """Seconds until the deadline, never negative; None without one."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - asyncio.get_running_loop().time())


class Method(msgspec.Struct, Generic[App, P], frozen=True):
    """One row of the table; what `call` says it returns is the published type of the result. `timeout` in seconds."""

    name: str
    params_type: type[P]
    call: Callable[[Context[App], P], Awaitable[object]]
    summary: str
    timeout: float | None = DEFAULT_TIMEOUT

    def decode_params(self, params: object) -> P:
        """Parameters given as JSON values (mapping, or None for none). InvalidInput names the field at fault."""
        if isinstance(params, (list, tuple)) and params:
            raise InvalidInput(
                f"{self.name} takes its parameters by name",
                hint='Send "params" as an object with named members.',
            )
        try:
            return msgspec.convert(params or {}, self.params_type)
        except msgspec.ValidationError as error:
            raise _invalid_input(self.name, str(error), self.params_type) from None


def method_of(name: str, function: Callable[..., Awaitable[object]], timeout: float | None) -> Method[Any, Any]:
    """The row of a function: its docstring is the summary, its annotations name the parameters and the result.

    Its first argument is the open app, or the context of the call if it is named `context`; `params` may be missing.
    """
    names = function.__annotations__

    @functools.wraps(function)
    async def call(context: Context[Any], params: Params) -> object:
        first = context if "context" in names else await context.app.wait_until_open()
        return await (function(first, params) if "params" in names else function(first))

    summary, _, _ = (inspect.getdoc(function) or "").partition("\n")
    return Method(name, names.get("params", NoParams), call, summary, timeout)


class LazyMethod(msgspec.Struct, frozen=True):
    """A row that names its function ("package.module:function"), which a starting program need not import."""

    name: str
    target: str
    timeout: float | None = DEFAULT_TIMEOUT

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    def resolve(self) -> Method[Any, Any]:
        function = getattr(importlib.import_module(self.module), self.target.partition(":")[2])
        return method_of(self.name, function, self.timeout)


Wrapper = Callable[[Method[App, Any]], Method[App, Any]]


class MethodTable(Mapping[str, Method[App, Any]], Generic[App]):
    """All methods by name. Two rows of one name are a defect and refused at once.

    `wrap` is applied to each method when it is resolved.
    """

    def __init__(
        self, rows: Iterable[Method[App, Any] | LazyMethod], *, wrap: Wrapper[App] = lambda method: method
    ) -> None:
        self._rows: dict[str, Method[App, Any] | LazyMethod] = {}
        self._resolved: dict[str, Method[App, Any]] = {}
        self._wrap = wrap
        for row in rows:
            if row.name in self._rows:
                raise ValueError(f"method {row.name} occurs twice in the table")
            self._rows[row.name] = row

    def __getitem__(self, name: str) -> Method[App, Any]:
        method = self._resolved.get(name)
        if method is None:
            row = self._rows[name]
            method = self._wrap(row.resolve() if isinstance(row, LazyMethod) else row)
            self._resolved[name] = method
        return method

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def wrapped(self, wrap: Wrapper[App]) -> "MethodTable[App]":
        """The same methods, each passed through `wrap`."""
        return MethodTable(self._rows.values(), wrap=wrap)

    async def resolve(self, name: str) -> Method[App, Any]:
        """The method; its module is imported in a thread, so that other calls are answered meanwhile."""
        row = self._rows[name]
        if name not in self._resolved and isinstance(row, LazyMethod):
            await asyncio.to_thread(importlib.import_module, row.module)
        return self[name]

    async def call(self, name: str, context: Context[App], params: object = None) -> object:
        """One call through the table, as the command line makes it. KeyError if there is no such method."""
        method = self[name]
        return await method.call(context, method.decode_params(params))


# msgspec writes "... field `name`" when a member is missing or unknown, "... - at `$.path`" for everything else.
_FIELD_IN_MESSAGE: Final = re.compile(r"field `([^`]*)`")
_PATH_IN_MESSAGE: Final = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")
_EMPTY_IN_MESSAGE: Final = re.compile(r"^Expected `(?:str|array)` of length >= 1$")
_PATTERN_IN_MESSAGE: Final = re.compile(r"^Expected `str` matching regex .*", re.DOTALL)


def _invalid_input(method: str, message: str, params_type: type) -> InvalidInput:
    """The sentence of msgspec as our error: the field apart, the sentence short, the hint with what is accepted."""
    path = _PATH_IN_MESSAGE.search(message)
    named = _FIELD_IN_MESSAGE.search(message)
    parts = [match.group(1) for match in (path, named) if match is not None and match.group(1)]
    where = ".".join(parts)[:MAX_MESSAGE_CHARS]
    what = _PATH_IN_MESSAGE.sub("", message)
    what = what if len(what) <= MAX_MESSAGE_CHARS else what[:MAX_MESSAGE_CHARS] + "…"
    at = f" ({where})" if where and named is None else ""
    what = _PATTERN_IN_MESSAGE.sub("it does not have the expected form", what)
    what = _EMPTY_IN_MESSAGE.sub("it is empty", what)
    is_named = message.startswith(("Invalid enum value", "Expected `str` matching regex"))
    accepted = _accepted_values(params_type, where) if is_named else ""
    hint = f"Give {accepted}; nothing was done." if accepted else None
    return InvalidInput(f"{method}: {what}{at}", field=where or None, hint=hint)


def _accepted_values(params_type: type, where: str) -> str:
    """The values of a field that has few, or an example of one that has a form; "" for others."""
    from msgspec import inspect as types  # noqa: PLC0415 - at a wrong call

    about = types.type_info(params_type)
    fields = about.fields if isinstance(about, types.StructType) else ()
    open_types = [field.type for field in fields if field.encode_name == where.partition("[")[0]]
    values: list[str] = []
    while open_types:
        one = open_types.pop()
        if isinstance(one, types.LiteralType):
            values += map(str, one.values)
        elif isinstance(one, types.Metadata):
            values += map(str, (one.extra_json_schema or {}).get("examples", ()))
            open_types.append(one.type)
        elif isinstance(one, types.UnionType):
            open_types += one.types
        elif isinstance(one, types.CollectionType | types.VarTupleType):
            open_types.append(one.item_type)
    return f"one of {', '.join(values)}" if len(values) > 1 else f"it as {values[0]}" if values else ""
