"""The tuned configurations of a dump directory and of an Inductor cache, and whose they are."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from structdump.bundle.model import Kernel
from structdump.bundle.names import DumpName
from structdump.errors import SourceError
from structdump.sources.configs import BestConfig, best_config_keys, fits, parse_best_config
from structdump.sources.dump_files import DumpFile, list_files
from structdump.sources.event import Event

UNMAPPED = "unmapped"


@dataclass(slots=True)
class Entry:
    """One `.best_config` file; `kernel` and `compile_id` once it is known whose it is."""

    file: DumpFile
    label: str
    config: BestConfig | None
    kernel: str | None = None
    compile_id: str | None = None
    guessed: bool = False


class ConfigTable:
    """All configurations, to be asked for those of one kernel.

    `torch_key` is what `torch._inductor.codecache.torch_key()` gives in the torch that dumped: without
    it, the hashed file names of newer torch cannot be computed. `cache` is an Inductor cache directory.
    """

    def __init__(
        self, files: Iterable[DumpFile], cache: Path | None = None, torch_key: bytes | None = None
    ) -> None:
        self.entries = [Entry(file, file.name, _read(file)) for file in files]
        self._torch_key = torch_key
        self._numbered: dict[tuple[str | None, int | None], Entry] = {}
        self._stems: dict[str, Entry] = {}
        self._folders: dict[str, list[Entry]] = defaultdict(list)
        self._modules: dict[str, int] = defaultdict(int)
        for entry in self.entries:
            parsed = entry.file.parsed
            if parsed is not None and parsed.function is not None:
                self._numbered[parsed.function, parsed.index] = entry
            elif parsed is not None:
                self._stems[parsed.name] = entry
        if cache is not None:
            self._read_cache(cache)

    def find(self, source: str, path: str | None = None, file: DumpFile | None = None) -> Entry | None:
        """Return the configuration of a kernel: by its dump file, by Inductor's own file, or by folder.

        The folder of an Inductor cache decides only where it holds a single kernel that this can be.
        """
        parsed: DumpName | None = file.parsed if file else None
        if parsed is not None and (found := self._numbered.get((parsed.function, parsed.index))):
            return found
        for name in filter(None, (file.name if file else None, path)):
            for key in best_config_keys(name, self._torch_key):
                if key in self._stems:
                    return self._stems[key]
        folder = PurePath(path).parent.name if path else ""
        free = [e for e in self._folders.get(folder, ()) if e.kernel is None and e.config]
        if len(free) == 1 and self._modules[folder] <= 1 and free[0].config and fits(source, free[0].config):
            free[0].guessed = True
            return free[0]
        return None

    def guess(self, kernels: Iterable[tuple[Event, str]]) -> dict[str, list[str]]:
        """Give each configuration left over to the only kernel it fits; return who else may have it.

        `kernels` are events with their sources. The result has files as keys.
        """
        possible: dict[str, list[str]] = {}
        pairs = [
            (event, source) for event, source in kernels if event.kernel and not event.kernel.best_config
        ]
        for entry in self.entries:
            if entry.kernel is not None or entry.config is None:
                continue
            fitting = [event for event, source in pairs if fits(source, entry.config)]
            if len(fitting) == 1 and fitting[0].kernel is not None:
                entry.guessed = True
                assign(entry, fitting[0])
            elif fitting:
                possible[entry.label] = sorted({event.name for event in fitting})
        return possible

    def events(self, possible: dict[str, list[str]]) -> list[Event]:
        """Return one event per file, mapped or not; `possible` is what `guess` returned."""
        return [_event(entry, possible.get(entry.label, [])) for entry in self.entries]

    def _read_cache(self, cache: Path) -> None:
        for file in list_files(cache):
            place = PurePath(file.name)
            if place.suffix == ".py" and "@triton.jit" in (file.read() or ""):
                self._modules[place.parent.name] += 1
            elif place.suffix == ".best_config":
                entry = Entry(file, f"inductor-cache/{file.name}", _read(file))
                self.entries.append(entry)
                self._stems.setdefault(place.stem, entry)
                self._folders[place.parent.name].append(entry)


def assign(entry: Entry, event: Event) -> None:
    """Put a configuration on its kernel, both ways."""
    if event.kernel is None or entry.config is None:
        return
    entry.kernel, entry.compile_id = event.kernel.name, event.compile_id
    event.kernel.best_config = entry.config.config
    if entry.guessed:
        event.inferred.append("kernel.best_config")


def open_cache(path: str | os.PathLike[str] | None) -> Path | None:
    """Check that `path` is an Inductor cache directory that can be read; raises SourceError if not."""
    if path is None:
        return None
    cache = Path(path)
    if not cache.is_dir():
        raise SourceError(f"{cache} is not a directory; give the Inductor cache (TORCHINDUCTOR_CACHE_DIR)")
    return cache


def _read(file: DumpFile) -> BestConfig | None:
    text = file.read()
    return None if text is None else parse_best_config(text)


def _event(entry: Entry, possible: list[str]) -> Event:
    config = entry.config
    event = Event(
        kind="best_config",
        name=entry.kernel or PurePath(entry.file.name).name.removesuffix(".best_config"),
        stage="file" if entry.kernel else UNMAPPED,
        compile_id=entry.compile_id,
        language="json",
        text=entry.file.read,
        data=config.as_dict() if config else None,
        files=[entry.label],
        unavailable=entry.file.problem,
        size=entry.file.size,
    )
    if entry.kernel is not None and config is not None:
        event.kernel = Kernel(name=entry.kernel, backend="triton", best_config=config.config)
        event.inferred = ["kernel"] if entry.guessed else []
    elif possible and event.data is not None:
        event.data["possible_kernels"] = possible[:20]
        event.inferred = ["data.possible_kernels"]
    return event
