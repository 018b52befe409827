"""The command line: one small file per command, each imported when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

#: Every command and the function that is it. Adding one is one file and one line here.
COMMANDS = {
    "run": "structdump.cli.run:run",
    "show": "structdump.cli.show:show",
    "list": "structdump.cli.list:list_artifacts",
    "cat": "structdump.cli.cat:cat",
    "extract": "structdump.cli.extract:extract",
    "pack": "structdump.cli.pack:pack",
    "diff": "structdump.cli.diff:diff",
    "html": "structdump.cli.html:html",
    "repro": "structdump.cli.repro:repro",
    "verify": "structdump.cli.verify:verify",
    "recover": "structdump.cli.recover:recover",
    "schema": "structdump.cli.schema:schema",
    "doctor": "structdump.cli.doctor:doctor",
}
#: Commands that hand everything after their first argument to another program.
PASSING_ON = frozenset({"run"})


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; never shows a traceback for an error that has a name.

    Exit codes: 0 ok, 1 differs or failed, 2 usage, 3 unreadable or unsupported, 4 partial.
    """
    import os

    import typer

    from structdump.errors import StructdumpError

    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = _app(arguments)(args=arguments, prog_name="structdump", standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        return 130
    except StructdumpError as error:
        print(f"structdump: {error}", file=sys.stderr)  # noqa: T201 # an error's one line
        return error.exit_code
    except BrokenPipeError:
        # The reader has had enough; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        # Usage errors are click's, which typer brings under a name of its own in newer releases.
        if not hasattr(error, "show"):
            raise
        error.show()
        return 2
    return code if isinstance(code, int) else 0


def _app(arguments: list[str]) -> Any:
    """Build the application; only the command that is called is imported, unless help needs them all."""
    import typer

    app = typer.Typer(
        help="Everything torch.compile did, in one small, structured, safe file.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    called = next((a for a in arguments if not a.startswith("-")), None)

    @app.callback(invoke_without_command=True)
    def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
        if version:
            from structdump import __version__

            typer.echo(f"structdump {__version__}")
            raise typer.Exit

    for name, place in COMMANDS.items():
        if called in COMMANDS and name != called:
            continue
        module, function = place.split(":")
        settings = (
            {"ignore_unknown_options": True, "allow_interspersed_args": False} if name in PASSING_ON else {}
        )
        app.command(name, context_settings=settings)(getattr(import_module(module), function))
    return app
