"""The JSON Schemas of the bundle and of the settings, generated from their models.

`python -m structdump.bundle.schema --write` writes them, `--check` fails if the files are stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from structdump.bundle.model import SCHEMA_URI, Bundle
from structdump.config import DumpConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"
CONFIG_URI = SCHEMA_URI.replace("bundle-v1", "config-v1")


def bundle_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a bundle, version 1.

    It allows unknown keys, as readers do. What is null may be left out.

    Example: `jsonschema.validate(document, bundle_schema())`
    """
    schema = Bundle.model_json_schema(by_alias=True, mode="serialization")
    digest = {"pattern": "^[0-9a-f]{32}$"}
    schema["properties"]["texts"]["propertyNames"] = digest
    schema["$defs"]["Artifact"]["properties"]["digest"]["anyOf"][0].update(digest)
    schema["properties"]["version"]["pattern"] = r"^1\.[0-9]+$"
    return _finished(schema, SCHEMA_URI)


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the settings, for the file that STRUCTDUMP_CONFIG names.

    It refuses unknown keys.
    """
    return _finished(DumpConfig.model_json_schema(mode="validation"), CONFIG_URI)


def _finished(schema: dict[str, Any], uri: str) -> dict[str, Any]:
    # pydantic calls whatever always gets written required; what matters to a reader is what it may rely on.
    for part in (schema, *schema.get("$defs", {}).values()):
        defaulted = {name for name, field in part.get("properties", {}).items() if "default" in field}
        required = [name for name in part.get("required", ()) if name not in defaulted]
        part.pop("required", None)
        if required:
            part["required"] = required
    if uri == SCHEMA_URI:
        schema["required"] = ["format", "version", "artifacts", "texts", "complete"]
    return {"$schema": DIALECT, "$id": uri, **schema}


def files() -> dict[str, str]:
    """Return the content of each generated file by its name."""
    schemas = {SCHEMA_URI: bundle_schema(), CONFIG_URI: config_schema()}
    return {
        uri.rpartition("/")[2]: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for uri, schema in schemas.items()
    }


def main(argv: list[str] | None = None) -> int:
    """Write or check the files; return the exit code (1: stale)."""
    parser = argparse.ArgumentParser(prog="python -m structdump.bundle.schema", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write the files")
    action.add_argument("--check", action="store_true", help="exit 1 if a file differs from the models")
    parser.add_argument("directory", nargs="?", default="schemas", type=Path)
    options = parser.parse_args(argv)
    stale = []
    for name, content in files().items():
        path = options.directory / name
        if options.write:
            path.write_text(content, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(str(path))
    if stale:
        print(  # noqa: T201  # a command's talk
            f"stale: {', '.join(stale)}; run: python -m structdump.bundle.schema --write", file=sys.stderr
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
