"""`structdump schema`: the JSON schemas of bundles and of settings."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated

import typer


class Which(str, Enum):
    """The two schemas there are."""

    bundle = "bundle"
    config = "config"


def schema(which: Annotated[Which, typer.Argument(help="which one")] = Which.bundle) -> None:
    """Print a JSON schema."""
    from structdump.bundle.schema import bundle_schema, config_schema

    made = bundle_schema() if which is Which.bundle else config_schema()
    typer.echo(json.dumps(made, indent=2))
