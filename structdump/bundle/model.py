"""The bundle, version 1, as pydantic models: the one description that the schema is made from.

Field order here is key order in the file. Readers ignore unknown keys, so a newer minor version
may add some; see `schemas/README.md` for the format on one page.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT: Literal["structdump"] = "structdump"
VERSION = "1.0"
SCHEMA_URI = "https://structdump.dev/schemas/bundle-v1.schema.json"

Kind = Literal[
    "graph",  # an FX graph: captured, pre_grad, joint, forward, backward, post_grad, split, …
    "pass",  # one run of one pass; its text is the graph after (or before) it
    "output_code",  # Inductor's wrapper module
    "kernel",  # a kernel that the output code runs
    "candidate",  # a kernel that was only benchmarked
    "best_config",  # the launch configuration that tuning chose for a kernel
    "autotune",  # choices of one tuned operation, with their times
    "guards",
    "source",  # decompiled: transformed bytecode as Python; full_code: the whole function with guards
    "bytecode",
    "repro",  # fx_graph_runnable: torch's own standalone script
    "ir",  # Inductor IR before/after fusion; TTIR, TTGIR, LLIR, PTX; compile commands
    "metrics",
    "cache",  # hits, misses, bypasses
    "event",  # anything else that torch reports and that is small
    "trace",  # chromium trace events and other bulk telemetry
]
Phase = Literal["before", "after"]
Direction = Literal["forward", "backward", "inference", "joint"]
Status = Literal["ok", "failed", "fell_back", "skipped", "unfinished"]
Verdict = Literal["cold", "warm", "partial", "empty"]


class Model(BaseModel):
    """Base: unknown keys are ignored, so that an older reader opens a newer minor version."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, ser_json_inf_nan="null")


class Producer(Model):
    """What wrote the file: always structdump, and which version of it."""

    name: str = "structdump"
    version: str = ""
    source: Literal["live", "directory", "trace_log", "merge"] = "live"


class Run(Model):
    """The one place where clocks, process ids and random ids stand."""

    id: str = ""
    started: str | None = Field(None, description="ISO 8601, UTC")
    ended: str | None = Field(None, description="ISO 8601, UTC")
    program: str = ""
    argv: list[str] = []
    pid: int | None = None
    rank: int | None = None
    world_size: int | None = None
    launcher: dict[str, str] = {}
    hook_seconds: float | None = Field(None, description="time spent in structdump's hooks")


class Device(Model):
    """One accelerator."""

    name: str
    index: int | None = None
    memory: int | None = Field(None, description="bytes")
    capability: str | None = None


class Environment(Model):
    """Versions, devices and the settings that differ from their defaults."""

    versions: dict[str, str | None] = Field({}, description="torch, depyf, triton, python, …")
    os: str | None = None
    cpu: str | None = None
    cpu_count: int | None = None
    devices: list[Device] = []
    drivers: dict[str, str] = Field({}, description="CUDA, ROCm, cuDNN and driver versions")
    configs: dict[str, dict[str, Any]] = Field(
        {}, description="per torch config module (torch._inductor.config, …): non-default values"
    )
    variables: dict[str, str] = Field({}, description="environment variables that concern torch")
    extra: dict[str, Any] = Field({}, description="facts of frameworks above torch, such as vLLM")


class Completeness(Model):
    """Whether everything that the compiler did can be in this bundle, and if not, what to do."""

    verdict: Verdict = "empty"
    reasons: list[str] = []
    hints: list[str] = Field([], description="what to set for a complete dump")
    seen: int = 0
    kept: int = 0
    indexed: int = 0
    dropped: int = 0


class SourceFrame(Model):
    """One frame of a Python stack."""

    file: str = ""
    line: int | None = None
    name: str = ""
    code: str | None = None


class GraphBreak(Model):
    """Where Dynamo stopped a graph, and the compile that took over after it."""

    reason: str
    stack: list[SourceFrame] = []
    resumed_by: str | None = Field(None, description="compile id of the resume function, if compiled")


class Recompile(Model):
    """Why a function was compiled again: the guard that failed, and the compile it belonged to."""

    reason: str
    guard: str | None = None
    previous: str | None = Field(None, description="compile id whose guard failed")


class Failure(Model):
    """An exception that ended a compile, as the user saw it."""

    type: str
    message: str
    traceback: str | None = None
    user_frame: SourceFrame | None = None


class Function(Model):
    """The Python function a compile is of."""

    name: str
    file: str | None = None
    line: int | None = None


class CacheState(Model):
    """What each cache answered for this compile: hit, miss, bypass, or None when not asked."""

    fx_graph: str | None = None
    aot_autograd: str | None = None
    key: str | None = None
    reason: str | None = Field(None, description="why a cache was bypassed")


class Compile(Model):
    """One compile of one frame. `id` is torch's compile id, such as `0/0` or `!0/1/0`."""

    id: str
    function: Function | None = None
    status: Status = "unfinished"
    seconds: float | None = Field(None, description="wall time of the whole compile")
    phases: dict[str, float] = Field({}, description="seconds per phase")
    error: Failure | None = None
    recompile: Recompile | None = None
    graph_breaks: list[GraphBreak] = []
    stack: list[SourceFrame] = Field([], description="where the user's program called it")
    guards: int | None = None
    symbols: dict[str, Any] = Field({}, description="symbolic shapes: name -> hint, range, source")
    cache: CacheState = CacheState()
    backend: str | None = None
    metrics: dict[str, Any] = {}
    attempts: int = 1
    ranks: list[int] | None = Field(
        None,
        description="ranks that compiled it alike, in a merged bundle; absent: all of `runs`",
    )
    seconds_by_rank: dict[str, float] | None = Field(None, description="seconds of each of `ranks`")


class Subgraph(Model):
    """A piece of a split graph, such as vLLM's piecewise compiles."""

    index: int | None = None
    name: str | None = None
    range: list[int] | None = Field(None, description="compile range, [start, end]")


class Omission(Model):
    """Why the text of an artifact is not in the bundle, and how large it was, if that is known."""

    reason: str
    bytes: int | None = None
    same: str | None = Field(
        None, description="with privacy=shapes: a token that artifacts have in common whose texts were equal"
    )


class Choice(Model):
    """One candidate of an autotuned operation."""

    name: str
    seconds: float | None = None
    config: dict[str, Any] = {}


class Autotune(Model):
    """All that is known of one autotuned operation."""

    operation: str
    shapes: list[str] = []
    winner: str | None = None
    choices: list[Choice] = []
    seconds: float | None = None


class Kernel(Model):
    """What a kernel is and where it comes from."""

    name: str
    backend: str = Field("unknown", description="triton, cpp, extern, pallas, cutlass, …")
    role: Literal["used", "candidate", "benchmark"] = "used"
    ops: list[str] = Field([], description="ATen ops it was made from")
    nodes: list[str] = Field([], description="graph nodes it was made from")
    fragment: str | None = Field(None, description="the graph fragment in Inductor's comment")
    heuristic: str | None = None
    size_hints: dict[str, int] | None = None
    loads: int | None = None
    stores: int | None = None
    reductions: int | None = None
    grid: str | None = None
    calls: int = Field(1, description="how often the output code calls it")
    best_config: dict[str, Any] | None = None
    performance: str | None = Field(None, description="the line of kernel_perf, where there is one")
    stack: list[SourceFrame] = []


class Artifact(Model):
    """One thing the compiler made. Its text, if kept, stands under `digest` in the bundle's texts."""

    seq: int
    kind: Kind
    stage: str | None = None
    name: str
    phase: Phase | None = None
    compile_id: str | None = None
    attempt: int | None = None
    graph_id: str | None = Field(
        None, description="AOTAutograd's name of the graph, such as model__0_forward"
    )
    direction: Direction | None = None
    subgraph: Subgraph | None = None
    language: str = "text"
    bytes: int | None = Field(None, description="UTF-8 bytes of the text as stored")
    nodes: int | None = None
    ops: dict[str, int] | None = None
    changed: bool | None = Field(None, description="whether it differs from its before")
    digest: str | None = None
    omitted: Omission | None = None
    inferred: list[str] = Field([], description="fields that were inferred, not reported")
    files: list[str] = Field([], description="files it came from, when packed from a directory")
    data: Any = Field(None, description="small structured content, for artifacts that are no text")
    kernel: Kernel | None = None
    autotune: Autotune | None = None
    ranks: list[int] | None = Field(
        None, description="ranks that have it, in a merged bundle; absent: all ranks of `runs`"
    )
    varies: bool | None = Field(
        None,
        description="True: the text is that of the first of `ranks`, and what others have differs from it in"
        " the index of their own device, cache file names, numbers of tokens, or clocks alone",
    )


class OmittedCount(Model):
    """How many artifacts one reason kept out, and their bytes as far as known."""

    indexed: int = 0
    dropped: int = 0
    bytes: int = 0


class HookError(Model):
    """A hook that failed or could not be installed. The program it watched went on."""

    hook: str
    error: str
    count: int = 1


class RankRun(Model):
    """One process of a merged bundle: what is its own, beside what `compiles` and `artifacts` say by rank."""

    rank: int = Field(description="its rank, or the number by which `ranks` name it; no two are the same")
    run: Run = Run()
    level: Literal["low", "medium", "full"] | None = Field(None, description="if it is not the bundle's")
    environment: dict[str, Any] = Field(
        {}, description="JSON merge patch (RFC 7396) from the bundle's environment to this process's"
    )
    verdict: Verdict = "empty"
    complete: bool = True
    device: str | None = Field(None, description="the first device in its graphs, such as cuda:3")
    notes: list[str] = Field([], description="what the merge had to decide, a sentence each")


class Bundle(Model):
    """The whole file."""

    schema_: str = Field(SCHEMA_URI, alias="$schema")
    format: Literal["structdump"] = FORMAT
    version: str = VERSION
    producer: Producer = Producer()
    run: Run = Run()
    runs: list[RankRun] | None = Field(None, description="the processes of a merged bundle, by rank")
    level: Literal["low", "medium", "full"] = "low"
    config: dict[str, Any] = {}
    environment: Environment = Environment()
    completeness: Completeness = Completeness()
    compiles: list[Compile] = []
    artifacts: list[Artifact] = []
    omitted: dict[str, OmittedCount] = {}
    redactions: dict[str, int] = {}
    hook_errors: list[HookError] = []
    texts: dict[str, str] = {}
    complete: bool = True
