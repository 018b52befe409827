"""Captures of the running process: started by the environment, or by `structdump.capture`."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from multiprocessing import util
from pathlib import Path
from typing import Any, TypeVar

from structdump.bundle.model import Run
from structdump.bundle.places import is_url
from structdump.bundle.writer import WriteResult
from structdump.config import DumpConfig
from structdump.errors import CaptureError
from structdump.sources.environment import collect, distributed_rank
from structdump.sources.session import Session
from structdump.sources.spool import warn
from structdump.sources.target import launcher_rank, program_name, resolve, resolve_url
from structdump.sources.upload import shown_url, upload

#: The capture of this whole process, if the environment asked for one: one item or none.
PROCESSES: list[Process] = []
#: The bundle that this process wrote last, if any: its path, or its URL.
WRITTEN: list[Path | str] = []
F = TypeVar("F", bound=Callable[..., Any])


class capture:  # noqa: N801 # it is called like a function: `with structdump.capture(...):`
    """Capture what torch.compile does inside a `with` block, or inside each call of a function.

    `output` is a directory, a file name with optional placeholders, or a URL (see `DumpConfig.output`);
    the other arguments are the settings of `DumpConfig`. Afterwards `path` is the bundle's path, or None
    if nothing was compiled, and `url` where it was uploaded instead, if that was asked for and worked.
    Captures may nest and may run in several threads; each sees what is compiled while it is open. An
    existing file is never overwritten unless `overwrite`.

    Raises `ConfigError` for a bad setting and `CaptureError` if PyTorch is not installed. Once
    inside, it raises nothing of its own.

    Example::

        with structdump.capture("run.json.zst", level="medium") as cap:
            torch.compile(model)(x)
        print(cap.path)
    """

    def __init__(
        self, output: str | os.PathLike[str] | None = None, *, overwrite: bool = False, **settings: Any
    ) -> None:
        if importlib.util.find_spec("torch") is None:
            raise CaptureError("PyTorch is not installed; structdump captures what torch.compile does")
        given = {**settings, "output": None if output is None else os.fspath(output)}
        self.config = DumpConfig.resolve(given)
        self.path: Path | None = None
        self.url: str | None = None
        self.result: WriteResult | None = None
        self._overwrite = overwrite
        self._session: Session | None = None

    def __enter__(self) -> capture:
        """Start listening."""
        if self._session is not None:
            raise CaptureError("this capture is open already; make another one to nest")
        if self.config.level != "off":
            self._session = start(self.config, overwrite=self._overwrite)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening and write the bundle. An exception in the block goes on unchanged."""
        session, self._session = self._session, None
        if session is not None:
            self.result = stop(session)
            self.url = session.url
            self.path = self.result.path if self.result and not self.url else None

    def __call__(self, function: F) -> F:
        """Decorate `function`: each call is a capture of its own."""

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            one = capture.__new__(capture)
            one.__dict__.update(self.__dict__, _session=None)
            with one:
                try:
                    return function(*args, **kwargs)
                finally:
                    self.path, self.url, self.result = one.path, one.url, one.result

        return wrapper  # type: ignore[return-value] # functools.wraps keeps the signature, mypy does not see it

    def pause(self) -> None:
        """Stop recording until `resume`; what compiles meanwhile is not in the bundle."""
        if self._session is not None:
            self._session.paused = True

    def resume(self) -> None:
        """Record again after `pause`."""
        if self._session is not None:
            self._session.paused = False

    def flush(self) -> None:
        """Write to the journal all that is known by now: what a killed process leaves is then whole so far.

        Texts, and each compile at its end, are written as they come; this adds the verdict and the counts.
        """
        if self._session is not None:
            self._session.flush()


def start(config: DumpConfig, *, overwrite: bool = False) -> Session:
    """Open a session that listens to this process."""
    from structdump.sources.hooks import HUB

    rank, size = launcher_rank(os.environ)
    program = program_name()
    run = Run(program=program, argv=list(sys.argv), pid=os.getpid(), rank=rank, world_size=size)

    session = Session(
        config,
        lambda: _target(session, config.output),
        run=run,
        environment=collect,
        wanted=functools.partial(_wanted, config, run),
        overwrite=overwrite,
    )
    HUB.attach(session)
    return session


def stop(session: Session) -> WriteResult | None:
    """Close a session: take what is only known at the end, write the bundle, say so on stderr."""
    from structdump.sources.hooks import HUB, collect_last

    if not session.closed:
        HUB.each("last", lambda s: collect_last(s) if s is session else None)
        HUB.detach(session)
        _refresh_rank(session.run)
        announced = session.result
        result = session.finish(keep=_worth_it(session))
        if result is not None and result is not announced:
            if session.url is not None:
                session.url = upload(result.path, session.url, session.privacy.message)
            announce(session, result)
            WRITTEN[:] = [session.url or result.path]
    return session.result


def checkpoint(session: Session) -> None:
    """Write the bundle of what `session` has seen so far, if it has seen more than last time; it goes on."""
    from structdump.sources.hooks import HUB, collect_last

    HUB.each("last", lambda s: collect_last(s) if s is session else None)
    _refresh_rank(session.run)
    result = session.checkpoint() if _worth_it(session) else None
    if result is not None:
        announce(session, result)
        WRITTEN[:] = [result.path]


def announce(session: Session, result: WriteResult) -> None:
    """Print the one line: path, size, level, and what was left out or redacted."""
    tally = session.tally
    parts = [f"{tally.kept} kept", f"{tally.indexed} indexed"]
    if tally.dropped:
        parts.append(f"{tally.dropped} counted only")
    if session.privacy.counts:
        parts.append(f"{sum(session.privacy.counts.values())} values redacted")
    if tally.errors:
        parts.append(f"{tally.errors} hook errors")
    place = session.privacy.place(result.path) if session.url is None else shown_url(session.url)
    warn(f"wrote {place} ({size(result.bytes)}, level {session.policy.level}: {', '.join(parts)})")


def size(count: int) -> str:
    """Return a number of bytes as a person writes it.

    Example::

        >>> size(12_345)
        '12.1 KiB'
    """
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def start_from_environment(environ: Mapping[str, str] | None = None) -> None:
    """Capture this process until it ends, as `STRUCTDUMP_*` say; called once torch._dynamo is imported.

    A bad setting costs one warning that names the valid ones, and no capture. Does nothing the second time.
    """
    from structdump.errors import ConfigError

    if PROCESSES:
        return
    try:
        config = DumpConfig.resolve(environ=environ)
    except ConfigError as error:
        warn(f"not active: {error}")
        return
    PROCESSES.append(Process(config))


class Process:
    """The capture of a whole process, and of each child that it forks."""

    def __init__(self, config: DumpConfig) -> None:
        self.config = config
        self.session = start(config)
        self.directory: str | None = None
        atexit.register(self.end)
        os.register_at_fork(after_in_child=self.forked)
        util.register_after_fork(self, Process.born)

    def end(self) -> None:
        """Write the bundle: the process ends."""
        stop(self.session)

    def dump_to(self, directory: str) -> None:
        """Let the bundle go to `directory`, from now on. After another directory it is a new bundle."""
        if self.directory == directory:
            return
        if self.directory is not None:
            stop(self.session)
            self.session = start(self.config)
        self.directory = directory
        self._move()

    def _move(self) -> None:
        session, directory = self.session, self.directory
        session.move(lambda: _target(session, f"{directory}{os.sep}"))

    def forked(self) -> None:
        """In a forked child the hub has let go of the parent's sessions: start one of its own."""
        self.session = start(self.config)
        if self.directory is not None:
            self._move()

    def born(self) -> None:
        """In a child of multiprocessing, which ends by os._exit and skips atexit: hook its own end."""
        util.Finalize(None, self.end, exitpriority=-100)


def _target(session: Session, output: str | None) -> Path:
    run = session.run
    _refresh_rank(run)
    name, level = session.privacy.program(run.program), session.config.level
    session.url = None
    if output is not None and is_url(output):
        session.url = resolve_url(output, program=name, level=level, rank=run.rank, ranks=run.world_size)
        # Kept if the upload fails, and a killed process leaves its journal there.
        return Path(tempfile.gettempdir(), f"{os.getpid()}-{session.url.rpartition('/')[2]}")
    return resolve(output, program=name, level=level, rank=run.rank)


def _worth_it(session: Session) -> bool:
    return session.config.when != "failure" or session.book.any_failed()


def _refresh_rank(run: Run) -> None:
    rank, world = distributed_rank()
    if rank is not None:
        run.rank, run.world_size = rank, world


def _wanted(config: DumpConfig, run: Run) -> bool:
    _refresh_rank(run)
    return not config.ranks or run.rank is None or run.rank in config.ranks
