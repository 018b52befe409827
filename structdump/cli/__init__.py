"""The command line: one small file per command, each imported when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

#: Every command: the function that it is, and what help says of it. Adding one is one file and one line here.
COMMANDS = {
    "run": ("structdump.cli.run:run", "Run a program and write a bundle of what it compiles."),
    "show": ("structdump.cli.show:show", "A bundle on one screen: versions, failures, compiles, kernels."),
    "list": ("structdump.cli.list:list_artifacts", "The artifacts of a bundle as a table."),
    "cat": ("structdump.cli.cat:cat", "One artifact in full."),
    "extract": ("structdump.cli.extract:extract", "A bundle as a directory of readable files."),
    "pack": ("structdump.cli.pack:pack", "Bundles of dump directories and TORCH_TRACE logs."),
    "merge": ("structdump.cli.merge:merge", "The bundles of many ranks as one, each text once."),
    "diff": ("structdump.cli.diff:diff", "What two runs compiled differently, and from which stage on."),
    "table": ("structdump.cli.table:table", "A table of many bundles: Parquet, CSV or JSON lines."),
    "html": ("structdump.cli.html:html", "One self-contained page to read in a browser."),
    "repro": ("structdump.cli.repro:repro", "A script that compiles a graph of a bundle again."),
    "share": ("structdump.cli.share:share", "A bundle made fit to be attached to a public issue."),
    "verify": ("structdump.cli.verify:verify", "Check that bundles are whole and consistent."),
    "recover": ("structdump.cli.recover:recover", "Bundles of the journals that killed processes left."),
    "schema": ("structdump.cli.schema:schema", "The JSON schemas of bundles and of settings."),
    "doctor": ("structdump.cli.doctor:doctor", "Whether a capture would work here."),
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
    called = next((a for a in arguments if not a.startswith("-")), None)
    if called not in PASSING_ON:
        _never_fail_to_print()
    try:
        app = _help(called) if called not in COMMANDS else _command(called)
        code = app(args=arguments, prog_name="structdump", standalone_mode=False)
        if called not in PASSING_ON:
            sys.stdout.flush()
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        return 130
    except StructdumpError as error:
        from structdump.report.printable import printable

        print(f"structdump: {printable(error, multiline=True)}", file=sys.stderr)  # noqa: T201 # an error's one line
        return error.exit_code
    except (BrokenPipeError, SystemExit) as end:
        # Both rich and typer turn a closed pipe into an exit with 1.
        if isinstance(end, SystemExit) and (
            called in PASSING_ON or not isinstance(end.__context__, BrokenPipeError)
        ):
            raise
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


def _never_fail_to_print() -> None:
    """Write what an encoding lacks as an escape. Not for `run`: a program keeps its streams as they are."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _application() -> Any:
    import typer

    app = typer.Typer(
        help="Everything torch.compile did, in one small, structured, safe file.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )

    @app.callback(invoke_without_command=True)
    def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
        if version:
            from structdump import __version__

            typer.echo(f"structdump {__version__}")
            raise typer.Exit

    return app


def _help(called: str | None) -> Any:
    """Return an application that can only be asked what there is: it imports no command."""
    from importlib.util import find_spec

    from structdump.errors import UsageError

    present = [n for n, (place, _) in COMMANDS.items() if find_spec(place.partition(":")[0]) is not None]
    if called is not None:
        from difflib import get_close_matches

        near = get_close_matches(called, present, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(present)}"
        raise UsageError(f"no command {called!r}; {hint}")
    app = _application()
    for name in present:
        app.command(name, help=COMMANDS[name][1])(lambda: None)
    return app


def _command(name: str) -> Any:
    """Return an application with one command, the only one that is imported.

    Raises UsageError if it is not installed, or something that it needs is not.
    """
    from structdump.errors import UsageError

    module, function = COMMANDS[name][0].split(":")
    try:
        command = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        missing = "this installation does not have it" if error.name == module else f"it needs {error.name}"
        raise UsageError(f"structdump {name} cannot run: {missing}") from error
    app = _application()
    passing_on = {"ignore_unknown_options": True, "allow_interspersed_args": False}
    app.command(name, context_settings=passing_on if name in PASSING_ON else {})(command)
    return app
