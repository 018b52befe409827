"""Where a session's records go: the journal beside the bundle, opened at the first event."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from structdump.bundle.journal import SUFFIX, Journal, beside
from structdump.bundle.model import Bundle
from structdump.bundle.writer import WriteResult, write_bundle, write_document
from structdump.errors import UsageError


class Spool:
    """The journal of one session, and the bundle it becomes. `shown` gives a path as it may be printed.

    With `live` a directory that cannot be written costs one warning and another place, a full disk
    one warning and the rest of the capture: the program goes on. Otherwise they are errors.
    """

    def __init__(self, *, live: bool, shown: Callable[[Path | None], str]) -> None:
        self.broken = False
        self._shown = shown
        self._live = live
        self._journal: Journal | None = None
        self._path: Path | None = None
        self._texts: set[str] = set()
        self._saved = False

    @property
    def opened(self) -> bool:
        """Whether there is a journal, so that a bundle will be written."""
        return self._journal is not None

    @property
    def path(self) -> Path | None:
        """Where the journal lies, or None if there is none."""
        return None if self._journal is None else self._journal.path

    def open(self, target: Callable[[], Path]) -> bool:
        """Create the journal of the bundle `target()`; return whether that worked.

        Raises UsageError if it did not and this is no live capture.
        """
        path = target()
        reasons = []
        # A running program that cannot write where it stands still gets its bundle.
        spare = [Path(tempfile.gettempdir()) / path.name] if self._live else []
        for place in (path, *spare):
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                self._journal = _create(place)
            except OSError as error:
                reasons.append(error.strerror or str(error))
                continue
            self._path = place
            if reasons:
                warn(
                    f"cannot write to the output directory ({reasons[0]}); the bundle goes to "
                    f"{self._shown(place)}"
                )
            return True
        if not self._live:
            raise UsageError(f"cannot write {path}: {reasons[0]}")
        self.broken = True
        warn(f"no capture: cannot write to the output directory: {reasons[0]}")
        return False

    def move(self, target: Callable[[], Path]) -> None:
        """Let the bundle of an open journal go to `target()`, if there can be one."""
        if self._journal is None:
            return
        path = target()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            warn(f"cannot write to {self._shown(path.parent)}: {error.strerror or error}")
            return
        self._path, self._saved = path, False

    def save(self, bundle: Bundle, *, max_bytes: int | None, overwrite: bool) -> WriteResult | None:
        """Write `bundle` in the place of the one that this spool wrote before; the journal stays open."""
        if self._path is None:
            return None
        try:
            result = write_document(
                bundle, self._path, max_bytes=max_bytes, overwrite=overwrite or self._saved
            )
        except Exception as error:
            if not self._live:
                raise
            warn(f"no bundle written: {getattr(error, 'strerror', None) or error}")
            return None
        self._path, self._saved = result.path, True
        return result

    def write(self, record: dict[str, Any]) -> None:
        """Append a record."""
        if self._journal is None or self.broken:
            return
        try:
            self._journal.write(record)
        except OSError as error:
            if not self._live:
                raise UsageError(f"cannot write {self._journal.path}: {error.strerror or error}") from None
            self.broken = True
            place = self._shown(self._journal.path)
            warn(f"capture ends early: {error.strerror or error}; {place} holds what was seen by then")

    def write_text(self, digest: str, text: str) -> None:
        """Append a text, unless it is there already."""
        if digest not in self._texts:
            self._texts.add(digest)
            self.write({"t": "text", "digest": digest, "text": text})

    def discard(self) -> None:
        """Remove the journal: there shall be no bundle."""
        if self._journal is not None:
            self._journal.discard()

    def abandon(self) -> None:
        """Forget the journal without touching it: it is the parent's of this forked process."""
        if self._journal is not None:
            self._journal.abandon()

    def finish(self, *, max_bytes: int | None, overwrite: bool) -> WriteResult | None:
        """Turn the journal into the bundle and remove it; None if nothing was recorded, or that failed."""
        if self._journal is None or self._path is None:
            return None
        self.write({"t": "end"})
        self._journal.close()
        try:
            result = write_bundle(
                self._journal.path, self._path, max_bytes=max_bytes, overwrite=overwrite or self._saved
            )
            self._journal.discard()
        except Exception as error:  # in a live capture the program's own exit comes first
            if not self._live:
                raise
            reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            if not self.broken:  # else it has been said
                warn(f"no bundle written: {reason}; {self._shown(self._journal.path)} holds the capture")
            return None
        return result


def _create(target: Path) -> Journal:
    try:
        return Journal.create(target.with_name(target.name + SUFFIX))
    except FileExistsError:  # of another process that writes to this name, or that died
        return Journal.create(beside(target))


def warn(message: str) -> None:
    """Print one line on stderr; the program's own output stays as it is."""
    print(f"structdump: {message}", file=sys.stderr)  # noqa: T201 # the one line on stderr is the interface
