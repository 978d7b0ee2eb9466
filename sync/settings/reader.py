"""Read and check the settings with pydantic-settings: flags, environment, `config.toml`.

The pydantic models are made of the groups of settings, which have the types, bounds and defaults.
"""

import functools
import json
import operator
import os
import re
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    SecretStr,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from sync.errors import SettingsError
from sync.settings.data_dir import ENV_PREFIX, SECRET_VARIABLES, named_data_dir, read_config_file, resolve_flag_path
from sync.settings.sections import SettingsSection
from sync.settings.settings import Settings
from sync.settings.values import HttpAddress, KeepLimit, decode_address, decode_key, decode_limit, decode_path

NESTING_SEPARATOR: Final = "__"
_VALIDATORS: Final[Mapping[Any, Any]] = {
    Path: PlainValidator(decode_path),
    HttpAddress: PlainValidator(decode_address),
    KeepLimit: PlainValidator(decode_limit),
    SecretStr: BeforeValidator(lambda raw: raw if isinstance(raw, SecretStr) else decode_key(raw)),
}


class SectionModel(BaseModel):
    """The base of the models of all groups."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class SourcesModel(BaseSettings):
    """The base of the model of all settings: the sources, first one first."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=NESTING_SEPARATOR,
        validate_default=False,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - named by the library
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - named by the library
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, the environment, and the `config.toml` that belongs to them; no `.env` file."""
        file = read_config_file(named_data_dir(init_settings().get("data_dir"), os.environ))
        return init_settings, env_settings, InitSettingsSource(settings_cls, file)

    @field_validator("log_level", mode="before", check_fields=False)
    @classmethod
    def accept_lower_case(cls, raw: Any) -> Any:
        return raw.upper() if isinstance(raw, str) else raw


def read_settings(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Read and check everything that is set. Raises SettingsError."""
    model = settings_model()
    _check_variables(environment, model)
    try:
        values: Any = model(**_resolve_flags(flags, model))
    except ValidationError as error:
        raise _to_settings_error(error) from None  # the cause would show the value, which may be a key
    settings: Settings = _to_struct(Settings, values)
    has_home = isinstance(values.daily, BaseModel) and "home" in values.daily.model_fields_set
    return settings if has_home else settings.with_daily_home()


# --- the models -------------------------------------------------------------------------------------------------------


@cache
def settings_model() -> type[BaseModel]:
    """The model of all settings, with their descriptions."""
    return _to_model(Settings, SourcesModel)


def _to_model(kind: type[msgspec.Struct], base: type[BaseModel]) -> type[BaseModel]:
    hints = get_type_hints(kind, localns={"SecretStr": SecretStr}, include_extras=True)
    fields: dict[str, Any] = {
        name: (_to_annotation(hints[name]), Field(default_factory=partial(_default_of, kind, name)))
        for name in kind.__struct_fields__
    }
    return create_model(kind.__name__, __base__=base, **fields)


def _default_of(kind: type[msgspec.Struct], name: str) -> Any:
    return getattr(kind(), name)


def _to_annotation(hint: Any) -> Any:
    """The type with the bounds and validators that pydantic understands."""
    if hint in _VALIDATORS:
        return Annotated[hint, _VALIDATORS[hint]]
    if isinstance(hint, type) and issubclass(hint, SettingsSection):
        return _to_model(hint, SectionModel)
    kinds = get_args(hint)
    if get_origin(hint) is Annotated:
        return Annotated[(_to_annotation(kinds[0]), *map(_to_field, kinds[1:]))]
    if get_origin(hint) in {Union, UnionType}:
        return functools.reduce(operator.or_, map(_to_annotation, kinds))
    return hint


def _to_field(meta: Meta) -> Any:
    return Field(
        gt=meta.gt,
        ge=meta.ge,
        le=meta.le,
        min_length=meta.min_length,
        max_length=meta.max_length,
        pattern=meta.pattern,
        description=meta.description,
    )


def _to_struct(kind: type[Any], values: BaseModel) -> Any:
    """The values as settings; a group of which nothing is set is one already."""
    read = dict(values)
    groups = {name: type(_default_of(kind, name)) for name, value in read.items() if isinstance(value, BaseModel)}
    return kind(**read | {name: _to_struct(group, read[name]) for name, group in groups.items()})


# --- what is set ------------------------------------------------------------------------------------------------------


def _resolve_flags(flags: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """The flags with absolute paths."""
    return {
        name: resolve_flag_path(value) if _type_of_setting([name], model) is Path else value
        for name, value in flags.items()
    }


def _check_variables(environment: Mapping[str, str], model: type[BaseModel]) -> None:
    """Refuse variables that name no setting, and lists and tables that are no JSON. Raises SettingsError."""
    for variable, value in environment.items():
        name = variable.upper()
        if not name.startswith(ENV_PREFIX) or name in SECRET_VARIABLES:
            continue
        kind = _type_of_setting(name.removeprefix(ENV_PREFIX).lower().split(NESTING_SEPARATOR), model)
        if kind is None:
            raise SettingsError(f"{variable} is not a setting of xiaobai-memory", hint="Correct or unset it.")
        if _is_table(kind) or get_origin(kind) is tuple:
            _check_json(variable, value, dict if _is_table(kind) else list)


def _type_of_setting(path: list[str], model: type[BaseModel]) -> Any:
    """The type of a setting without its bounds; None if there is no such setting."""
    field = model.model_fields.get(path[0])
    kind: Any = None if field is None else field.annotation
    if len(path) == 1:
        return kind
    return _type_of_setting(path[1:], kind) if _is_table(kind) else None


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _check_json(variable: str, text: str, kind: type) -> None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise SettingsError(f"{variable} cannot be read: a list or a table is written as JSON")


def _to_settings_error(error: ValidationError) -> SettingsError:
    """The first error under the setting's name, without the value."""
    details = error.errors(include_url=False, include_input=False)[0]
    path = [part for part in details["loc"] if isinstance(part, str)]
    if details["type"] == "extra_forbidden":
        return SettingsError(f"{'.'.join(path)} is not a setting of xiaobai-memory")
    cause = details.get("ctx", {}).get("error")  # what a validator of ours raised
    problem = str(cause) if cause else re.sub("^(Input|String|Value) should", "must", details["msg"])
    return SettingsError(f"{ENV_PREFIX}{NESTING_SEPARATOR.join(path).upper()} ({'.'.join(path)}): {problem}")
