"""Every setting, and the places it may come from: keywords, environment, a file, defaults.

Example::

    DumpConfig.resolve({"level": "medium"}, environ={"STRUCTDUMP_PASSES": "*fusion*,!*horizontal*"})
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from structdump.bundle.model import Kind
from structdump.errors import ConfigError

PREFIX = "STRUCTDUMP_"
KINDS: tuple[str, ...] = get_args(Kind)
PLACEHOLDERS = ("program", "time", "rank", "pid", "level")
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


class DumpConfig(BaseModel):
    """What a capture keeps and where the bundle goes. Unknown keys are refused.

    Patterns are shell globs, case-insensitive, with `_` and space alike; `re:` starts a regular
    expression; a leading `!` negates; the last pattern that matches a name decides. A list that
    starts with a negated pattern leaves everything else to the level; any other list keeps what it
    names whole, at any level, and indexes the rest.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    level: Literal["off", "low", "medium", "full"] = Field("low", description="how much to keep")
    output: str | None = Field(
        None,
        description="a directory (default: the current one) or a file name, which may hold "
        "{program} {time} {rank} {pid} {level}; or the URL of one, such as s3://bucket/runs",
    )
    passes: tuple[str, ...] = Field((), description="graph stages and passes, by name")
    kernels: tuple[str, ...] = Field((), description="kernels, by name")
    configs: tuple[str, ...] = Field((), description="best configs and autotune tables, by kernel name")
    functions: tuple[str, ...] = Field((), description="compiled Python functions, by name")
    kinds: tuple[str, ...] = Field((), description=f"kinds of artifact: {', '.join(KINDS)}")
    ranks: tuple[int, ...] = Field((), description="capture only in these ranks; empty: in all")
    every_pass: bool | None = Field(
        None, description="record each Inductor pass; None: at level full, or when `passes` names some"
    )
    max_bytes: int | None = Field(
        24 * 2**20, description="largest bundle, compressed bytes; 0 or none: no limit", ge=0
    )
    redact: bool = Field(True, description="replace private values by tokens")
    redact_patterns: tuple[str, ...] = Field((), description="more regular expressions to redact")
    privacy: Literal["normal", "shapes"] = Field(
        "normal", description="shapes: topology, shapes and torch's own names; no source, no other names"
    )
    when: Literal["always", "failure"] = Field(
        "always", description="failure: write a bundle only if a compile failed or fell back"
    )
    keep_raw: bool = Field(
        False, description="under vLLM: depyf's own files as well, in the debug dump path beside the bundle"
    )

    @field_validator("passes", "kernels", "configs", "functions", "kinds", "redact_patterns", mode="before")
    @classmethod
    def _split(cls, value: Any, info: Any) -> Any:
        if isinstance(value, str):
            # A regular expression may hold commas, so redaction patterns are split at line ends.
            value = value.splitlines() if info.field_name == "redact_patterns" else value.split(",")
        if isinstance(value, (list, tuple)):
            stripped = (v.strip() if isinstance(v, str) else v for v in value)
            return tuple(v for v in stripped if v != "")
        return value

    @field_validator("ranks", mode="before")
    @classmethod
    def _split_ranks(cls, value: Any) -> Any:
        return [v for v in value.split(",") if v.strip()] if isinstance(value, str) else value

    @field_validator("max_bytes", mode="before")
    @classmethod
    def _parse_size(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value or None
        if value.strip().lower() in ("", "none", "0"):
            return None
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
        if not match or match[2].upper() not in UNITS:
            raise ValueError(
                f"{value!r} is no size; write bytes, or a number with KB, MB, GB, KiB, MiB or GiB"
            )
        return int(float(match[1]) * UNITS[match[2].upper()])

    @field_validator("passes", "kernels", "configs", "functions", "kinds", "redact_patterns")
    @classmethod
    def _compile(cls, value: tuple[str, ...], info: Any) -> tuple[str, ...]:
        for pattern in value:
            body = pattern.removeprefix("!")
            if info.field_name == "redact_patterns":
                _check_regex(body)
            elif body.startswith("re:"):
                _check_regex(body[3:])
            elif info.field_name == "kinds" and not any(c in body for c in "*?[") and body not in KINDS:
                raise ValueError(_suggest(body, KINDS, "kind"))
        return value

    @field_validator("output")
    @classmethod
    def _placeholders(cls, value: str | None) -> str | None:
        for name in re.findall(r"\{([^}]*)\}", value or ""):
            if name not in PLACEHOLDERS:
                raise ValueError(_suggest(name, PLACEHOLDERS, "placeholder"))
        return value

    @classmethod
    def resolve(
        cls, keywords: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
    ) -> DumpConfig:
        """Combine keywords, environment, file and defaults, in that order of precedence.

        `environ` is `os.environ` by default. Raises `ConfigError` naming the setting, where it was
        set, and the valid values.
        """
        environ = os.environ if environ is None else environ
        given = {k: v for k, v in (keywords or {}).items() if v is not None}
        sources = {k: f"{k}=" for k in given}
        from_environ, path = _read_environ(environ)
        merged: dict[str, Any] = {}
        if path:
            from_file = read_file(Path(path))
            merged.update(from_file)
            sources = {**{k: f"{k} in {path}" for k in from_file}, **sources}
        for key, value in from_environ.items():
            merged[key] = value
            if key not in given:
                sources[key] = PREFIX + key.upper()
        merged.update(given)
        try:
            return cls.model_validate(merged)
        except ValidationError as error:
            raise ConfigError(explain(error, sources)) from None


def read_file(path: Path) -> dict[str, Any]:
    """Read settings from a TOML or JSON file; TOML may hold them at the top or under `[structdump]`.

    Raises `ConfigError` if it cannot be read, is neither, or holds no table.
    """
    try:
        raw = path.expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(f"{PREFIX}CONFIG: cannot read {path}: {error.strerror}") from None
    try:
        if path.suffix.lower() == ".json":
            data = json.loads(raw)
        else:
            if sys.version_info >= (3, 11):
                import tomllib
            else:
                import tomli as tomllib  # type: ignore[import-not-found] # installed on Python 3.10 alone
            data = tomllib.loads(raw.decode())
    except ValueError as error:
        raise ConfigError(
            f"{path} is no valid {'JSON' if path.suffix == '.json' else 'TOML'}: {error}"
        ) from None
    if isinstance(data, dict) and isinstance(data.get("structdump"), dict):
        data = data["structdump"]
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds a {type(data).__name__}, not a table of settings")
    return data


def _read_environ(environ: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    names = {PREFIX + field.upper(): field for field in DumpConfig.model_fields}
    known = (*names, PREFIX + "CONFIG")
    for key in sorted(environ):
        if key.startswith(PREFIX) and key not in known:
            raise ConfigError(_suggest(key, known, "variable"))
    found = {field: environ[key] for key, field in names.items() if environ.get(key)}
    return found, environ.get(PREFIX + "CONFIG")


def _check_regex(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


def _suggest(value: str, valid: tuple[str, ...] | list[str], what: str) -> str:
    near = difflib.get_close_matches(value.lower(), [v.lower() for v in valid], n=1)
    original = next((v for v in valid if near and v.lower() == near[0]), None)
    hint = f" Did you mean {original!r}?" if original else ""
    return f"unknown {what} {value!r}.{hint} Valid: {', '.join(valid)}"


def explain(error: ValidationError, sources: Mapping[str, str]) -> str:
    """Turn pydantic's report into one line per fault: the setting, its source, the valid values."""
    lines = []
    for item in error.errors():
        field = str(item["loc"][0]) if item["loc"] else ""
        where = sources.get(field, field)
        value = item.get("input")
        if item["type"] == "extra_forbidden":
            lines.append(_suggest(field, list(DumpConfig.model_fields), "setting"))
        elif item["type"] == "literal_error":
            valid = get_args(DumpConfig.model_fields[field].annotation)
            lines.append(f"{where}: {_suggest(str(value), valid, 'value')}")
        else:
            lines.append(f"{where}: {item['msg'].removeprefix('Value error, ')} (got {value!r})")
    return "; ".join(lines)
