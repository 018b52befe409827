"""What tuning chose: `.best_config` and `.kernel_perf` files, and the file name a kernel's choice gets.

The content is what `AutotuneCache.save` writes (torch/_inductor/runtime/autotune_cache.py, 2.11 and 2.13).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePath
from typing import Any

FACTS = ("configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash")


@dataclass(slots=True)
class BestConfig:
    """One tuned configuration.

    `config` holds what the kernel is launched with (XBLOCK, num_warps, num_stages, …), `facts` what is
    known of the tuning: `configs_hash`, `found_by_coordesc`, `time_taken_ms`, `triton_cache_hash`.
    """

    config: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return both as one mapping, the configuration first."""
        return {**self.config, **self.facts}


def parse_best_config(text: str) -> BestConfig | None:
    """Read a `.best_config` file; None when `text` is no JSON object.

    Example::

        >>> parse_best_config('{"XBLOCK": 16, "num_warps": 1, "time_taken_ms": 131}').config
        {'XBLOCK': 16, 'num_warps': 1}
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return split_config(data) if isinstance(data, dict) else None


def split_config(data: Mapping[str, Any]) -> BestConfig:
    """Sort the entries of what `AutotuneCache.save` was given into configuration and facts."""
    return BestConfig(
        {key: value for key, value in data.items() if key not in FACTS},
        {key: data[key] for key in FACTS if key in data},
    )


def parse_kernel_perf(text: str) -> float | None:
    """Read a `.kernel_perf` file: the benchmarked time of a kernel in milliseconds, None if damaged.

    Inductor writes it when it benchmarks fusions (`torch/_inductor/scheduler.py` and
    `codegen/simd.py`); "inf" stands for a kernel that spilled too many registers.
    """
    try:
        return float(text.strip())
    except ValueError:
        return None


def best_config_keys(filename: str, torch_key: bytes | None = None, tag: str = "") -> list[str]:
    """Return the stems that the `.best_config` of the kernel in `filename` may have.

    The most likely comes first. `torch_key` is what `torch._inductor.codecache.torch_key()` gives:
    a hash of torch's own source, without which the name that newer torch gives cannot be computed.
    `tag` is `torch.compiler.config.cache_key_tag`. Reimplements `AutotuneCache._prepare_key` and
    `_make_local_cache_key`, so that directories can be read where torch is another version or absent;
    the steps are sha256 over plain strings in torch 2.9 to 2.13.

    Example::

        >>> best_config_keys("/cache/ab/cabc.py")[-1]
        'cabc'
    """
    path = PurePath(filename)
    inner = sha256(f"{path.name}:{tag}".encode("utf-8", "surrogateescape")).hexdigest()
    keys = [inner, path.stem]  # as older releases of torch name it
    if torch_key is not None:
        keys.insert(0, sha256(inner.encode() + torch_key).hexdigest())
    return keys


def fits(source: str, config: BestConfig) -> bool:
    """Tell whether `config` can be one of a Triton kernel: it sets the block sizes that `source` takes."""
    blocks = {name for name in config.config if name.isupper() and name.endswith("BLOCK")}
    takes = set(re.findall(r"\b([A-Z0-9_]*BLOCK) *: *tl\.constexpr[,)]", source))
    return "@triton.jit" in source and bool(blocks) and blocks == takes
