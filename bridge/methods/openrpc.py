"""The methods table as an OpenRPC document (spec.open-rpc.org 1.3): what typed clients are generated from."""

from typing import Any, Final, get_type_hints

import msgspec

from bridge.methods.door import Door
from bridge.methods.failures import CODES
from bridge.methods.table import Context, Method, NoParams, Table
from sync import __version__

OPENRPC_VERSION: Final = "1.3.2"


async def _leave(context: Context[Door], params: NoParams) -> None:
    """Only to be described: the connection itself answers it, after all others (`bridge.rpc.dispatch`)."""


SHUTDOWN: Final[Method[Door, Any]] = Method("shutdown", NoParams, _leave, "Answer last, then leave with exit 0.")


def document(table: Table[Door]) -> dict[str, Any]:
    """Every method with its parameters by name, its result, and the errors any of them may answer."""
    methods = [*table.values(), SHUTDOWN]
    shapes = [method.params for method in methods]
    results = [_result(method) for method in methods]
    _, components = msgspec.json.schema_components([*shapes, *results], ref_template="#/components/schemas/{name}")
    if ambiguous := sorted(name for name in components if not name.isidentifier()):
        raise ValueError(f"two published types have the same class name: {', '.join(ambiguous)}")
    return {
        "openrpc": OPENRPC_VERSION,
        "info": {"title": "xiaobai-memory", "version": __version__, "license": {"name": "MIT"}},
        "methods": [_method(method, components) for method in methods],
        "components": {
            "schemas": components,
            "errors": {kind: {"code": code, "message": kind} for kind, code in CODES.items()},
        },
    }


def _method(method: Method[Door, Any], components: dict[str, Any]) -> dict[str, Any]:
    shape = components[method.params.__name__]
    required = set(shape.get("required", ()))
    return {
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "by-name",
        "params": [
            {"name": name, "required": name in required, "schema": schema}
            for name, schema in shape["properties"].items()
        ],
        "result": {"name": "result", "schema": _schema(_result(method))},
        "errors": [{"$ref": "#/components/errors/internal"}, {"$ref": "#/components/errors/invalid_input"}],
    }


def _result(method: Method[Door, Any]) -> Any:
    """What the function says it returns: the row need not say it again."""
    return get_type_hints(method.call)["return"]


def _schema(shape: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([shape], ref_template="#/components/schemas/{name}")
    return schema
