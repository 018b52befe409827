"""privacy="shapes": what of each part of a bundle may stay when nothing of the user's may be in it.

What stays: topology, ops and their counts, shapes and dtypes, kernels' names, configs, times, and
digests of what is kept. What goes: source, comments, literals, arguments of the program, values of
variables, and any name that is not torch's own; each name becomes a token, the same one each time.

All is made anew from what is known (`torch_names.txt`, and the patterns here); what is not known is
left out, so a field or a name of a newer torch is lost rather than let through.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from structdump.bundle import shapes_environment as surroundings
from structdump.bundle import shapes_words as words
from structdump.bundle.codec import digest
from structdump.bundle.shapes_environment import only
from structdump.bundle.shapes_graph import graph
from structdump.bundle.shapes_names import Names, is_generic, is_kernel, is_record
from structdump.bundle.torch_names import known

Data = dict[str, Any]

_PLAIN = ("seq", "kind", "phase", "attempt", "direction", "bytes", "nodes", "changed", "digest", "ranks")
_FACTS = frozenset(
    {
        "nodes_before", "position", "state", "compile_range_start", "compile_range_end", "piecewise_index",
        "total_piecewise_compiles", "is_single_size", "is_cudagraph_capture_size", "milliseconds", "oss",
    }
)  # fmt: skip
_LANGUAGES = frozenset({"text", "python", "cpp", "json", "xml", "c++", "llvm", "mlir", "ptx", "asm"})
_ANSWERS = frozenset({"hit", "miss", "bypass", "disabled", "local_hit", "remote_hit"})
_GRAPH_ID = re.compile(r"model__\d{1,6}_(?:forward|backward|inference|joint)(?:_\d{1,6})?")
_LAUNCH = re.compile(
    r"(?:[XYZR]\d?_?BLOCK|BLOCK_[MNKXYZ]|GROUP_M|SPLIT_K|RSPLIT(?:_SIZE)?|NUM_STAGES|EVEN_K|USE_FAST_ACCUM|ACC_TYPE"
    r"|ALLOW_TF32|num_(?:warps|stages|ctas|buffers_warp_spec|consumer_groups)|maxnreg|minRegAutoWS|maxRegAutoWS"
    r"|waves_per_eu|matrix_instr_nonkdim|kpack|configs_hash|found_by_coordesc|time_taken_ms|triton_cache_hash"
    r"|size_hint\d?|x|y|z|r\d?_?)"
)
_VALUE = re.compile(r"tl\.(?:float|int|uint|bfloat)\d{1,2}|[0-9a-f]{32,64}|[A-Z2-7]{52}|True|False")
_NUMERIC = re.compile(r"[\d\s.,x*/()+-]{1,200}")
_SHAPE = re.compile(
    r"(?:[\dsuxX*+, ()\[\]/:-]|torch\.\w{2,16}|float\d{1,2}|bfloat16|u?int\d{1,2}|bool|contiguous){0,300}"
)
_HASH = re.compile(r"[0-9a-z]{32,64}")
_SYMBOL = re.compile(r"[suz]f?\d{1,6}|zuf\d{1,6}")
_RANGE = re.compile(r"[\[(]?(?:-?\d{1,20}|-?int_oo|-?oo|VR|[\s,\[\]()])*")
_LOADED = re.compile(r"[!\d/_#a-z]{1,40}: (?:loaded from the [\w ]{1,80}|no end of this compile was seen)")
_REASON = re.compile(r"[a-z][a-z0-9 _:,-]{0,60}")
_HOOK = re.compile(r"(text|measure) of (.*)", re.DOTALL)


class Shapes:
    """Takes each part of a bundle, as plain data, and gives it back with nothing of the user's in it.

    With `again`, tokens of an earlier run stay as they are, so that doing it twice changes nothing.

    Example::

        Shapes().compile({"id": "0/0", "function": {"name": "route", "file": "/srv/moe.py", "line": 3}})
        # {'id': '0/0', 'function': {'name': '<function-1>', 'file': '<file-1>.py', 'line': 3}}
    """

    def __init__(self, *, again: bool = False) -> None:
        self.names = Names(again=again)
        self._texts: dict[str, str] = {}

    def graph(self, text: str) -> str:
        """Return the text of a graph or a pass, see `shapes_graph`."""
        return graph(text, self.names)

    def same(self, text: str) -> str:
        """Return a token for a text that is left out: equal texts have equal ones.

        No digest: of a text that one knows but for a word, a digest would tell the word.
        """
        return self._texts.setdefault(digest(text), f"<text-{len(self._texts) + 1}>")

    def artifact(self, data: Data) -> Data:
        """Return an artifact; whether its text may stay is not asked here."""
        names = self.names
        kind = data.get("kind")
        found = {key: data[key] for key in _PLAIN if key in data}
        tuned = kind in ("kernel", "candidate", "best_config", "autotune", "ir")
        found["name"] = _titled(str(data.get("name", "")), names, kernel=tuned)
        if data.get("stage") is not None:
            found["stage"] = names.record("stage", data["stage"])
        if data.get("compile_id") is not None:
            found["compile_id"] = words.compile_id(data["compile_id"], names)
        if data.get("graph_id") is not None:
            known_id = _GRAPH_ID.fullmatch(data["graph_id"])
            found["graph_id"] = data["graph_id"] if known_id else names.token("graph", data["graph_id"])
        if data.get("language") in _LANGUAGES:
            found["language"] = data["language"]
        if data.get("ops"):
            found["ops"] = self._ops(data["ops"])
        if data.get("subgraph"):
            piece = data["subgraph"]
            name = piece.get("name")
            found["subgraph"] = {
                **only(piece, ("index", "range")),
                **({"name": name if is_generic(name) else names.token("piece", name)} if name else {}),
            }
        if data.get("omitted"):
            found["omitted"] = {**data["omitted"], "reason": _reason(data["omitted"].get("reason", ""))}
        if data.get("inferred"):
            found["inferred"] = [f for f in data["inferred"] if re.fullmatch(r"[a-z_.]{1,40}", f)]
        if data.get("kernel"):
            found["kernel"] = self._kernel(data["kernel"])
        if data.get("autotune"):
            found["autotune"] = self._autotune(data["autotune"])
        content = self._data(data.get("data"), launch=tuned)
        return {**found, "data": content} if content else found

    def _ops(self, ops: Mapping[str, int]) -> dict[str, int]:
        found: dict[str, int] = {}
        for op, count in ops.items():
            name = self.names.op(op)
            found[name] = found.get(name, 0) + count
        return dict(sorted(found.items()))

    def _kernel(self, kernel: Data) -> Data:
        names = self.names
        found = only(kernel, ("role", "loads", "stores", "reductions", "calls"))
        found["name"] = names.kernel(kernel.get("name", ""))
        for key in ("backend", "heuristic"):
            if kernel.get(key):
                found[key] = names.record(key, kernel[key])
        if kernel.get("ops"):
            found["ops"] = [names.op(op) for op in kernel["ops"]]
        if kernel.get("nodes"):
            found["nodes"] = [names.node(node) for node in kernel["nodes"]]
        for key in ("grid", "performance"):
            if kernel.get(key) and (_NUMERIC.fullmatch(kernel[key]) or is_record(kernel[key])):
                found[key] = kernel[key]
        for key in ("size_hints", "best_config"):
            if kernel.get(key):
                found[key] = self._launch(kernel[key])
        return found

    def _autotune(self, tuned: Data) -> Data:
        names = self.names
        found = only(tuned, ("seconds",))
        found["operation"] = names.kernel(tuned.get("operation", ""))
        found["shapes"] = [shape for shape in tuned.get("shapes", []) if _SHAPE.fullmatch(shape)]
        if tuned.get("winner"):
            found["winner"] = names.kernel(tuned["winner"])
        found["choices"] = [
            {
                **only(c, ("seconds",)),
                "name": names.kernel(c.get("name", "")),
                "config": self._launch(c.get("config")),
            }
            for c in tuned.get("choices", [])
        ]
        return found

    def _launch(self, config: Any) -> Data:
        """Return a launch configuration: settings of Triton's, and numbers under tokens for others."""
        if not isinstance(config, dict):
            return {}
        found: Data = {}
        for key, value in config.items():
            if key == "possible_kernels" and isinstance(value, list):
                found[key] = [self.names.kernel(name) for name in value if isinstance(name, str)]
            elif isinstance(value, (bool, int, float)) or (
                isinstance(value, str) and _VALUE.fullmatch(value)
            ):
                found[key if _LAUNCH.fullmatch(key) else self.names.identifier("option", key)] = value
        return found

    def _data(self, data: Any, *, launch: bool) -> Data:
        if not isinstance(data, dict):
            return {}
        if launch:
            return self._launch(data)
        found = {k: v for k, v in data.items() if k in _FACTS and (not isinstance(v, str) or v in _ANSWERS)}
        if isinstance(data.get("key"), str) and _HASH.fullmatch(data["key"]):
            found["key"] = data["key"]
        if isinstance(data.get("ops_before"), dict):
            found["ops_before"] = self._ops(data["ops_before"])
        if isinstance(data.get("kernel"), str):
            found["kernel"] = self.names.kernel(data["kernel"])
        if isinstance(data.get("submod_name"), str) and is_generic(data["submod_name"]):
            found["submod_name"] = data["submod_name"]
        return found

    def compile(self, data: Data) -> Data:
        """Return the record of a compile."""
        names = self.names
        found = only(data, ("status", "seconds", "guards", "attempts"))
        found["id"] = words.compile_id(str(data.get("id", "")), names)
        if data.get("function"):
            found["function"] = self._function(data["function"])
        found["phases"] = {k: v for k, v in data.get("phases", {}).items() if _is_phase(k)}
        if data.get("error"):
            found["error"] = self._error(data["error"])
        if data.get("recompile"):
            found["recompile"] = self._recompile(data["recompile"])
        found["graph_breaks"] = [self._break(b) for b in data.get("graph_breaks", [])]
        found["stack"] = [words.frame(f, names) for f in data.get("stack", [])]
        found["symbols"] = {k: _symbol(v) for k, v in data.get("symbols", {}).items() if _SYMBOL.fullmatch(k)}
        cache = data.get("cache") or {}
        found["cache"] = {k: cache[k] for k in ("fx_graph", "aot_autograd") if cache.get(k) in _ANSWERS}
        if cache.get("key") and _HASH.fullmatch(cache["key"]):
            found["cache"]["key"] = cache["key"]
        if data.get("backend"):
            found["backend"] = (
                data["backend"]
                if data["backend"] in known("strings")
                else names.token("backend", data["backend"])
            )
        found["metrics"] = self._metrics(data.get("metrics", {}))
        return found

    def _function(self, data: Data) -> Data:
        found = {**only(data, ("line",)), "name": words.function(data.get("name", ""), self.names)}
        return {**found, "file": words.file(data["file"], self.names)} if data.get("file") else found

    def _error(self, error: Data) -> Data:
        names = self.names
        found = {
            "type": words.exception(error.get("type", ""), names),
            "message": words.message(error.get("message", "")),
        }
        if error.get("traceback"):
            found["traceback"] = words.traceback(error["traceback"], names)
        return (
            {**found, "user_frame": words.frame(error["user_frame"], names)}
            if error.get("user_frame")
            else found
        )

    def _recompile(self, data: Data) -> Data:
        names = self.names
        found = {"reason": words.guard(data.get("reason", ""), names)}
        if data.get("guard"):
            found["guard"] = words.guard(data["guard"], names)
        if data.get("previous"):
            found["previous"] = words.compile_id(data["previous"], names)
        return found

    def _break(self, data: Data) -> Data:
        names = self.names
        found = {
            "reason": words.graph_break(data.get("reason", ""), names),
            "stack": [words.frame(f, names) for f in data.get("stack", [])],
        }
        resumed = data.get("resumed_by")
        return {**found, "resumed_by": words.compile_id(resumed, names)} if resumed else found

    def _metrics(self, metrics: Data) -> Data:
        found: Data = {}
        for key, value in metrics.items():
            if key.removeprefix("backward_") not in known("metrics"):
                continue
            if isinstance(value, (bool, int, float)):
                found[key] = value
            elif key.endswith("restart_reasons") and isinstance(value, list):
                found[key] = [words.graph_break(str(reason), self.names) for reason in value]
        return found

    def environment(self, data: Data) -> Data:
        """Return the environment: versions, devices, torch's own settings and variables."""
        return surroundings.environment(data, self.names)

    def run(self, data: Data) -> Data:
        """Return the run: clocks and numbers, without program and arguments."""
        return surroundings.run(data)

    def config(self, data: Data) -> Data:
        """Return the settings of the capture, with tokens for patterns."""
        return surroundings.config(data, self.names)

    def completeness(self, data: Data) -> Data:
        """Return verdict, counts, hints, and those reasons that name no file."""
        reasons = [
            r if _LOADED.fullmatch(r) else self.names.token("note", r) for r in data.get("reasons", [])
        ]
        return {**data, "reasons": reasons}

    def hook_error(self, data: Data) -> Data:
        """Return a hook's error by its type."""
        subject = _HOOK.fullmatch(str(data.get("hook", "")))
        hook = f"{subject[1]} of {_titled(subject[2], self.names)}" if subject else str(data.get("hook", ""))
        kind, _, rest = str(data.get("error", "")).partition(":")
        error = words.exception(kind, self.names) if " " not in kind else "<message omitted>"
        return {
            **data,
            "hook": hook,
            "error": f"{error}: {words.message(rest.strip())}" if rest else error,
        }

    def omitted(self, data: Mapping[str, Any]) -> Data:
        """Return the counts of what was left out, by reason."""
        return {_reason(reason): count for reason, count in data.items()}


def _titled(name: str, names: Names, *, kernel: bool = False) -> str:
    """Return the name of an artifact; the function in it as its token."""
    if is_record(name) or (kernel and is_kernel(name)):
        return name
    start, end = re.match(r"((?:original|transformed|decompiled|full_code_for)[ _])?", name), ""
    rest = name[start.end() :] if start else name
    if found := re.search(r"_(?:ORIGINAL|MODIFIED)_BYTECODE$", rest):
        rest, end = rest[: found.start()], found[0]
    if (start and start.end()) or end:
        return f"{start[0] if start else ''}{words.function(rest, names)}{end}"
    return names.kernel(name) if kernel else names.token("name", name)


def _reason(reason: str) -> str:
    return reason if _REASON.fullmatch(reason) else "other"


def _is_phase(name: str) -> bool:
    base = name.removeprefix("backward_")
    return name in ("dynamo", "backward") or any(m.startswith(base + "_") for m in known("metrics"))


def _symbol(value: Any) -> Data:
    """Return what is known of a symbolic size, but for where it comes from."""
    facts = value if isinstance(value, dict) else {}
    return {key: facts[key] for key in ("hint", "range", "val", "vr") if _is_size(facts.get(key))}


def _is_size(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_size(item) for item in value)
    return isinstance(value, (int, float)) or (isinstance(value, str) and bool(_RANGE.fullmatch(value)))
