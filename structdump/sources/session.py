"""One capture: events in, policy asked, text printed if kept, redacted, journalled; a bundle at the end."""

from __future__ import annotations

import functools
import threading
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, get_args

from structdump import __version__
from structdump.bundle.codec import digest
from structdump.bundle.graphs import measure_text
from structdump.bundle.limits import OWN
from structdump.bundle.model import Artifact, Autotune, Bundle, Kind, Omission, Run
from structdump.bundle.normal import normalise
from structdump.bundle.privacy import REASON, Privacy
from structdump.bundle.reader import load
from structdump.bundle.redact import Redactor
from structdump.bundle.writer import WriteResult
from structdump.config import DumpConfig
from structdump.select.policy import Policy
from structdump.sources.clock import Clock
from structdump.sources.compiles import CompileBook
from structdump.sources.completeness import verdict
from structdump.sources.event import Event, described
from structdump.sources.spool import Spool
from structdump.sources.tally import Tally

#: Kinds that a compile makes: torch's id of them is not always unique, and sometimes missing.
MADE = frozenset(get_args(Kind)) - {"event", "metrics", "cache", "trace"}
#: Kinds that belong to the piece of a split graph that is being compiled, if their source does not say.
PIECEWISE = frozenset({"graph", "pass", "candidate", "autotune", "ir"})
Source = Literal["live", "directory", "trace_log", "merge"]


class Session:
    """Records the events of one source into one bundle.

    The journal opens at the first event, so a session that sees none leaves no file. `record` and
    `fail` never raise; a full disk costs one warning and the rest of the capture, not the program.

    `target` and `wanted` are called once, at the first event: the path of the bundle, and whether
    there is to be one. `notes` are further reasons for the verdict, and `partial` makes it so.
    `clock` measures the time that hooks spend for this session. `url` is where the bundle is to be uploaded.
    """

    def __init__(
        self,
        config: DumpConfig,
        target: Callable[[], Path],
        *,
        source: Source = "live",
        run: Run | None = None,
        environment: Callable[[], dict[str, Any]] = dict,
        wanted: Callable[[], bool] = lambda: True,
        overwrite: bool = False,
    ) -> None:
        self.config = config
        self.policy = Policy(config)
        self.book = CompileBook()
        self.privacy = Privacy(
            Redactor(enabled=config.redact, patterns=config.redact_patterns),
            shapes=config.privacy == "shapes",
        )
        self.run = run or Run(program="")
        self.run.id = self.run.id or uuid.uuid4().hex
        self.run.started = self.run.started or _now()
        self.result: WriteResult | None = None
        self.url: str | None = None
        self.notes: list[str] = []
        self.partial = False
        self.paused = False
        self.closed = False
        self.clock = Clock()
        self._wanted = wanted
        self._source = source
        self._target = target
        self._environment = environment
        self._overwrite = overwrite
        self._lock = threading.RLock()
        self._spool = Spool(live=source == "live", shown=self.privacy.place)
        self.tally = Tally()
        self._saved = self._news = 0
        self._before: dict[tuple[Any, ...], str] = {}
        # Passes that change nothing hand in the same text dozens of times.
        self._prepared = functools.lru_cache(maxsize=4)(self._prepare)
        self._counted = functools.lru_cache(maxsize=4)(measure_text)

    @property
    def active(self) -> bool:
        """Whether events are still wanted."""
        return not (self.closed or self.paused or self._spool.broken)

    @property
    def opened(self) -> bool:
        """Whether anything has been recorded, so that a bundle will be written."""
        return self._spool.opened

    def record(self, event: Event) -> None:
        """Take one event. Its text is asked for only if the policy keeps it."""
        if not self.active:
            return
        self._record(event)
        # Torch sends metrics when a compile has ended; one that never ends is known from its start.
        if event.compile_id is not None and (event.kind == "metrics" or event.stage == "start"):
            self.note_compile(event.compile_id)

    def skips(self, kind: str, name: str, stage: str | None) -> bool:
        """Count an event that is dropped whatever compile it is of; return False if `record` must decide."""
        if self.policy.functions:
            return False
        decision = self.policy.decide(kind, name, stage)
        if decision.action != "drop":
            return False
        with self._lock:
            if self.active and self._open():
                self.tally.begin()
                self.tally.omit(decision.reason, "dropped")
        return True

    def _record(self, event: Event) -> None:
        if event.kind in MADE:
            resolved = self.book.resolve(event.compile_id)
            if event.compile_id is None and resolved is not None:
                event.inferred = [*event.inferred, "compile_id"]
            event.compile_id = resolved
            if event.subgraph is None and event.kind in PIECEWISE:
                event.subgraph = self.book.piece_of(resolved)
        decision = self.policy.decide(
            event.kind,
            event.name,
            event.stage,
            event.phase,
            event.changed,
            self.book.function_of(event.compile_id),
        )
        with self._lock:
            if not self._open():
                return
            seq = self.tally.begin()
            self._news += event.kind != "trace"
            if decision.action == "drop":
                self.tally.omit(decision.reason, "dropped", event.size)
                return
        artifact = self._describe(event, seq)
        text: str | None = None
        reason = event.unavailable or (decision.reason if decision.action == "index" else None)
        omitted = Omission(reason=reason, bytes=event.size) if reason else None
        if omitted is None:
            try:
                text = event.text() if callable(event.text) else event.text
                if event.text is not None and text is None:
                    omitted = Omission(reason="no text")
            except Exception as error:  # noqa: BLE001 # torch's own printers may fail; the compile must not
                self.fail(f"text of {event.name}", error)
                omitted = Omission(reason="error")
        self._store(artifact, text, omitted)

    def fail(self, hook: str, error: BaseException | str) -> None:
        """Note that a hook failed. The same failure is stored once and counted."""
        message = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        with self._lock:
            self.tally.fail(hook, normalise(message)[:2000])

    def note_compile(self, compile_id: str) -> None:
        """Journal what is known of a compile by now, so that a killed process leaves it."""
        with self._lock:
            found = self.book.record(compile_id)
            if found is not None and self.opened and not self.closed:
                data = self.privacy.compile(found.model_dump(exclude_defaults=True))
                self._spool.write({"t": "compile", "compile": data})

    def flush(self) -> None:
        """Journal everything that is known by now, the verdict and all compiles included."""
        with self._lock:
            if self.opened and not self.closed:
                self._spool.write(self._state())

    def snapshot(self) -> Bundle | None:
        """Return the bundle that this capture would be if it ended now; None if nothing was recorded.

        Raises BundleError or OSError if the journal can't be read back.
        """
        with self._lock:
            if self._spool.path is None or self.closed:
                return None
            self.flush()
            bundle = load(self._spool.path, limits=OWN).document()
            facts = self._verdict()
        bundle.complete = True
        bundle.completeness = bundle.completeness.model_copy(update=facts)
        bundle.omitted.pop("unrecorded", None)
        return bundle

    def move(self, target: Callable[[], Path]) -> None:
        """Let the bundle go to `target()` instead; the journal stays where it is if it is open."""
        with self._lock:
            self._target = target
            self._spool.move(target)

    def checkpoint(self) -> WriteResult | None:
        """Write the bundle as if the capture ended now; it goes on, and a later bundle replaces this one.

        Returns None if nothing but telemetry was recorded since the last time, or if it could not be written.
        """
        with self._lock:
            seen = self.tally.seen
            bundle = self.snapshot() if self._news else None
            if bundle is None:
                return None
            result = self._spool.save(bundle, max_bytes=self.config.max_bytes, overwrite=self._overwrite)
            if result is not None:
                self._saved, self._news, self.result = seen, 0, result
            return result

    def finish(self, *, keep: bool = True) -> WriteResult | None:
        """Write the bundle and remove the journal; returns None if there was nothing to write.

        With `keep=False` nothing more is written.
        """
        with self._lock:
            if self.closed:
                return self.result
            self.closed = True
            if not keep or (self._saved and self._saved == self.tally.seen):
                self._spool.discard()
                return self.result
            if self.opened:
                self._spool.write(self._state())
            self.result = self._spool.finish(max_bytes=self.config.max_bytes, overwrite=self._overwrite)
            return self.result

    def abandon(self) -> None:
        """Forget everything without touching the file: this is a forked child."""
        self._lock = threading.RLock()
        self.closed = True
        self._spool.abandon()

    def _describe(self, event: Event, seq: int) -> Artifact:
        artifact = described(event, seq)
        artifact.autotune = self._trimmed(event.autotune)
        if event.measure is not None:
            try:
                artifact.nodes, artifact.ops = event.measure()
            except Exception as error:  # noqa: BLE001 # a graph that cannot be counted is still a graph
                self.fail(f"measure of {event.name}", error)
        return artifact

    def _trimmed(self, autotune: Autotune | None) -> Autotune | None:
        if autotune is None or not self.policy.trims_choices(autotune.operation):
            return autotune
        return autotune.model_copy(update={"choices": autotune.choices[:1]})

    def _store(self, artifact: Artifact, text: str | None, omitted: Omission | None) -> None:
        with self._lock:
            stored = None
            if text is not None:
                stored, artifact.digest, artifact.bytes, omitted = self._prepared(artifact.kind, text)
                self._compare(artifact)
            self.tally.settle(kept=omitted is None)
            if omitted is not None:
                artifact.omitted = omitted
                self.tally.omit(omitted.reason, "indexed", omitted.bytes)
            data = self.privacy.artifact(artifact.model_dump(exclude_defaults=True))
            if stored is not None and artifact.digest is not None:
                if artifact.kind in ("graph", "pass") and artifact.language == "python":
                    data["nodes"], data["ops"] = self._counted(stored)
                self._spool.write_text(artifact.digest, stored)
            self._spool.write({"t": "artifact", "artifact": data})

    def _prepare(self, kind: str, text: str) -> tuple[str | None, str | None, int | None, Omission | None]:
        """Return a text as it is stored, its digest and its bytes; or why it is not."""
        normal = normalise(text)
        stored = self.privacy.text(kind, normal)
        if stored is None:
            size = len(normal.encode("utf-8", "surrogatepass"))
            return None, None, None, Omission(reason=REASON, bytes=size, same=self.privacy.same(normal))
        return stored, digest(stored), len(stored.encode("utf-8", "surrogatepass")), None

    def _compare(self, artifact: Artifact) -> None:
        if artifact.phase is None or artifact.digest is None or artifact.kind != "graph":
            return
        piece = artifact.subgraph.name if artifact.subgraph else None
        key = (artifact.compile_id, artifact.graph_id, artifact.stage, piece)
        if artifact.phase == "before":
            self._before[key] = artifact.digest
        elif key in self._before and artifact.changed is None:
            artifact.changed = self._before.pop(key) != artifact.digest

    def _open(self) -> bool:
        if self.opened:
            return True
        if self.closed or not self._wanted() or not self._spool.open(self._target):
            self.closed = True
            return False
        self._spool.write(
            {
                "t": "head",
                "producer": {"name": "structdump", "version": __version__, "source": self._source},
                "run": self.privacy.run(self.run.model_dump()),
                "level": self.policy.level,
                "config": self.privacy.config(self.config.model_dump(mode="json")),
            }
        )
        self._spool.write({"t": "state", "environment": self._collect_environment()})
        return True

    def _collect_environment(self) -> dict[str, Any]:
        try:
            environment = self._environment()
        except Exception as error:  # noqa: BLE001 # a bundle without environment is better than none
            self.fail("environment", error)
            return {}
        environment["extra"] = {**environment.get("extra", {}), **self.book.framework}
        return self.privacy.environment(environment)

    def _state(self) -> dict[str, Any]:
        compiles = self.book.records()
        self.run.ended = _now()
        if self._source == "live":
            self.run.hook_seconds = round(self.clock.seconds, 6)
        state: dict[str, Any] = {
            "t": "state",
            "environment": self._collect_environment(),
            "compiles": [self.privacy.compile(c.model_dump(exclude_defaults=True)) for c in compiles],
            "completeness": self.privacy.completeness({**self._verdict(), **self.tally.totals()}),
            "omitted": self.privacy.omitted(self.tally.omitted),
            "hook_errors": [self.privacy.hook_error(e) for e in self.tally.hook_errors()],
            "run": self.privacy.run(self.run.model_dump()),
        }
        state["redactions"] = self.privacy.counts
        return state

    def _verdict(self) -> dict[str, Any]:
        found = verdict(self.book).model_dump(include={"verdict", "reasons", "hints"})
        found["reasons"] += self.notes
        if self.partial:
            found["verdict"] = "partial"
        return found


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
