"""The methods table as an OpenRPC document (spec.open-rpc.org 1.3): what typed clients are generated from."""

from typing import Any, Final

import msgspec

from bridge.api.app_provider import AppProvider
from bridge.api.errors import ERROR_CODES
from bridge.api.method_table import Context, Method, MethodTable, NoParams
from sync import __version__

OPENRPC_VERSION: Final = "1.3.2"


async def _shutdown(context: Context[AppProvider], params: NoParams) -> None:
    """Only to be described: the connection itself answers it, after all others (`bridge.rpc.dispatcher`)."""


SHUTDOWN: Final[Method[AppProvider, Any]] = Method(
    "shutdown", NoParams, _shutdown, "Answer last, then leave with exit 0."
)


def openrpc_document(table: MethodTable[AppProvider]) -> dict[str, Any]:
    """Every method with its parameters by name, its result, and the errors any of them may answer."""
    methods = [*table.values(), SHUTDOWN]
    shapes = [method.params_type for method in methods]
    results = [_result_type(method) for method in methods]
    _, components = msgspec.json.schema_components([*shapes, *results], ref_template="#/components/schemas/{name}")
    _, result_types = msgspec.json.schema_components(results, ref_template="#/components/schemas/{name}")
    components |= {name: _sorted_members(schema) for name, schema in result_types.items()}
    if ambiguous := sorted(name for name in components if not name.isidentifier()):
        raise ValueError(f"two published types have the same class name: {', '.join(ambiguous)}")
    return {
        "openrpc": OPENRPC_VERSION,
        "info": {"title": "xiaobai-memory", "version": __version__, "license": {"name": "MIT"}},
        "methods": [_method_object(method, components) for method in methods],
        "components": {
            "schemas": components,
            "errors": {kind: {"code": code, "message": kind} for kind, code in ERROR_CODES.items()},
        },
    }


def _sorted_members(schema: dict[str, Any]) -> dict[str, Any]:
    """A result type with its members by name, as msgspec describes a TypedDict, so that a Struct looks the same."""
    if "properties" not in schema:
        return schema
    members = dict(sorted(schema["properties"].items()))
    return {**schema, "properties": members, "required": sorted(schema.get("required", ()))}


def _method_object(method: Method[AppProvider, Any], components: dict[str, Any]) -> dict[str, Any]:
    shape = components[method.params_type.__name__]
    required = set(shape.get("required", ()))
    return {
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "by-name",
        "params": [
            {"name": name, "required": name in required, "schema": schema}
            for name, schema in shape["properties"].items()
        ],
        "result": {"name": "result", "schema": _schema_of(_result_type(method))},
        "errors": [{"$ref": "#/components/errors/internal"}, {"$ref": "#/components/errors/invalid_input"}],
    }


def _result_type(method: Method[AppProvider, Any]) -> Any:
    """What the function says it returns: the row need not say it again."""
    return method.call.__annotations__["return"]


def _schema_of(shape: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([shape], ref_template="#/components/schemas/{name}")
    return schema
