"""What of the environment, the run and the settings may stand in a shapes-only bundle."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from structdump.bundle.shapes_names import Names
from structdump.bundle.torch_names import known

Data = dict[str, Any]

_VERSION = re.compile(
    r"v?\d[\w.]{0,30}?(?=\+|-|$)"
    r"(?:\+(?:cu\d{2,4}|cpu|xpu|rocm\d[\d.]{0,9}|git[0-9a-f]{6,40})(?=\.|$))?"
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_HARDWARE = re.compile(
    r"(?:Intel|AMD|NVIDIA|Apple|ARM|Tesla|GeForce|Radeon|Neoverse|Ampere|Google|Gaudi|Xeon|EPYC)"
    r"[\w .,@()/+-]{0,80}"
)
_SYSTEM = re.compile(
    r"(?:Debian|Ubuntu|Red Hat|CentOS|Rocky|Alma|Fedora|Amazon|SUSE|Alpine|Oracle|Linux|macOS|Windows)"
    r"[ \w/]{0,40}?[\d.]{0,12}(?= \(|-|,|$)"
)
_PACKAGES = frozenset(
    {
        "structdump", "python", "implementation", "torch", "depyf", "triton", "numpy", "transformers",
        "vllm", "sglang", "torchao", "torchvision", "torch_git", "cuda", "hip", "xpu", "cudnn", "nvidia",
    }
)  # fmt: skip
_VLLM = (
    "mode", "level", "backend", "custom_ops", "cudagraph_mode", "use_inductor",
    "use_inductor_graph_partition",
)  # fmt: skip
_SETTINGS = ("level", "kinds", "ranks", "every_pass", "max_bytes", "redact", "when")
_PATTERNS = ("passes", "kernels", "configs", "functions", "redact_patterns")
_SHORT = re.compile(r"[+-]?\d{1,5}|\d\.\d{1,2}")


def only(data: Mapping[str, Any], keys: tuple[str, ...]) -> Data:
    """Return the entries that are wanted, as far as they are set."""
    return {key: data[key] for key in keys if data.get(key) is not None}


def environment(data: Data, names: Names) -> Data:
    """Return versions, devices, torch's own settings and variables; of other settings, tokens."""
    found = only(data, ("cpu_count",))
    for key in ("versions", "drivers"):
        found[key] = {k: _version(v) for k, v in (data.get(key) or {}).items() if k in _PACKAGES}
    for key, pattern in (("os", _SYSTEM), ("cpu", _HARDWARE)):
        if data.get(key):
            found[key] = _matched(pattern, data[key])
    found["devices"] = [_device(device) for device in data.get("devices") or ()]
    found["configs"] = {
        module: {k: _setting(v, names) for k, v in values.items() if f"{module}.{k}" in known("configs")}
        for module, values in (data.get("configs") or {}).items()
        if module in ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")
    }
    variables = data.get("variables") or {}
    found["variables"] = {k: _safe(v, names) for k, v in variables.items() if k in known("variables")}
    vllm = (data.get("extra") or {}).get("vllm")
    if isinstance(vllm, dict):
        found["extra"] = {"vllm": {k: _setting(vllm[k], names) for k in _VLLM if k in vllm}}
    return found


def run(data: Data) -> Data:
    """Return clocks and numbers of the run, without its program and arguments."""
    found = only(data, ("id", "started", "ended", "pid", "rank", "world_size", "hook_seconds"))
    launcher = {k: v for k, v in (data.get("launcher") or {}).items() if k == "dp_rank" and v.isdigit()}
    return {**found, "program": "program", "argv": [], "launcher": launcher}


def config(data: Data, names: Names) -> Data:
    """Return the settings of the capture, with tokens for patterns."""
    found = {**only(data, _SETTINGS), "privacy": "shapes"}
    return {**found, **{key: [names.token("pattern", p) for p in data.get(key) or ()] for key in _PATTERNS}}


def _device(data: Data) -> Data:
    found = {**only(data, ("index", "memory")), "name": _matched(_HARDWARE, data.get("name", "")) or "device"}
    capability = data.get("capability") or ""
    return {**found, "capability": capability} if re.fullmatch(r"[\w.]{1,12}", capability) else found


def _setting(value: Any, names: Names) -> Any:
    if isinstance(value, dict):
        return {
            k if k in known("passes") else names.identifier("option", str(k)): _setting(v, names)
            for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_setting(v, names) for v in value]
    return _safe(value, names) if isinstance(value, str) else value


def _safe(value: str, names: Names) -> str:
    """Return a value of which every word is a known one or a short number, else its token."""
    words = [word for word in re.split(r"[,:;=\s]+", value) if word]
    safe = all(word in known("strings") or _SHORT.fullmatch(word) for word in words)
    return value if safe else names.token("value", value)


def _matched(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.match(text)
    return found[0].strip() or None if found else None


def _version(value: Any) -> str | None:
    if value is None or value == "CPython" or _COMMIT.fullmatch(str(value)):
        return value  # type: ignore[no-any-return] # one of these two, or None
    return _matched(_VERSION, str(value))
