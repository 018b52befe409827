"""The one gate to a bundle: each part passes here on its way into the file, and again when it is shared.

Redaction replaces private values by tokens, unless it is off; privacy="shapes" lets pass only what is
known to be torch's own. Both may be in force: shapes first, then redaction over what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structdump.bundle.redact import Redactor

if TYPE_CHECKING:
    from structdump.bundle.shapes import Shapes

Data = dict[str, Any]
_GRAPHS = frozenset({"graph", "pass"})
#: The reason of artifacts whose text privacy="shapes" leaves out.
REASON = "privacy"


class Privacy:
    """What may stand in one bundle.

    `redactor` replaces private values; with `shapes`, only what is torch's own is let through, and with
    `again` what an earlier run of it made stays as it is.

    Example::

        Privacy(Redactor(user="alex")).program("alex-moe")  # '<user-1>-moe'
    """

    def __init__(self, redactor: Redactor, *, shapes: bool = False, again: bool = False) -> None:
        self._redactor = redactor
        self._shapes: Shapes | None = None
        if shapes:  # what few ask for costs the others nothing
            from structdump.bundle.shapes import Shapes

            self._shapes = Shapes(again=again)

    @property
    def shapes(self) -> bool:
        """Whether only shapes and topology are let through."""
        return self._shapes is not None

    @property
    def counts(self) -> dict[str, int]:
        """How many values each rule replaced, by rule name."""
        names = self._shapes.names.counts if self._shapes else {}
        return {**self._redactor.counts, **names}

    def text(self, kind: str, text: str) -> str | None:
        """Return the text of an artifact as it may be stored; None if it can't be made safe."""
        if self._shapes is None:
            return self._redactor.text(text)
        return self._redactor.text(self._shapes.graph(text)) if kind in _GRAPHS else None

    def same(self, text: str) -> str | None:
        """Return a token for a text that is left out, by which equal ones are known."""
        return self._shapes.same(text) if self._shapes else None

    def artifact(self, data: Data) -> Data:
        """Return an artifact's record."""
        return self._redacted(self._shapes.artifact(data) if self._shapes else data)

    def compile(self, data: Data) -> Data:
        """Return a compile's record."""
        return self._redacted(self._shapes.compile(data) if self._shapes else data)

    def environment(self, data: Data) -> Data:
        """Return the environment; variables are judged by their names as well."""
        known = self._shapes.environment(data) if self._shapes else data
        variables = self._redactor.env(known.get("variables") or {})
        rest = self._redacted({key: value for key, value in known.items() if key != "variables"})
        return {**rest, "variables": variables}

    def run(self, data: Data) -> Data:
        """Return the facts of the run."""
        if self._shapes:
            return self._shapes.run(data)
        return self._redacted({**data, "argv": self._redactor.argv(data.get("argv") or ())})

    def config(self, data: Data) -> Data:
        """Return the capture's settings; a pattern of what is private is private itself."""
        if self._shapes:
            return self._shapes.config(data)
        patterns = [f"<pattern-{number + 1}>" for number, _ in enumerate(data.get("redact_patterns") or ())]
        return self._redacted({**data, "redact_patterns": patterns} if self._redactor.enabled else data)

    def completeness(self, data: Data) -> Data:
        """Return verdict, reasons and counts."""
        return self._redacted(self._shapes.completeness(data) if self._shapes else data)

    def hook_error(self, data: Data) -> Data:
        """Return the error of a hook."""
        return self._redacted(self._shapes.hook_error(data) if self._shapes else data)

    def omitted(self, data: Mapping[str, Any]) -> Data:
        """Return the counts of what was left out, by reason."""
        return self._shapes.omitted(data) if self._shapes else dict(data)

    def program(self, name: str) -> str:
        """Return the program's name as a file name may hold it."""
        return "program" if self._shapes else self._redactor.text(name)

    def value(self, data: Data) -> Data:
        """Return plain data of any form, redacted alone."""
        return self._redacted(data)

    def message(self, text: str) -> str:
        """Return what is to be printed on the user's screen."""
        return self._redactor.text(text)

    def place(self, path: Path | None) -> str:
        """Return a path as a person may read it in a public log: relative, with `~`, or redacted."""
        if self._shapes:
            return "nowhere" if path is None else path.name
        return self._redactor.text(shown(path))

    def _redacted(self, data: Data) -> Data:
        clean: Data = self._redactor.value(data)
        return clean


def shown(path: Path | None) -> str:
    """Return `path` as a person may read it in a public log: relative, or with `~` for the home.

    Example::

        shown(Path.home() / "run.json.zst")  # '~/run.json.zst'
    """
    if path is None:
        return "nowhere"
    for base, prefix in _bases():
        if path.absolute().is_relative_to(base):
            return f"{prefix}{path.absolute().relative_to(base)}"
    return str(path)


def _bases() -> Iterable[tuple[Path, str]]:
    for find, prefix in ((Path.cwd, ""), (Path.home, "~/")):
        try:
            yield find(), prefix
        except (OSError, RuntimeError):  # the directory is gone, or the user has no home
            continue
