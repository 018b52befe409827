"""Versions, devices and settings of the running process, without starting anything expensive.

Nothing here initialises a device or starts a program: `torch.utils.collect_env` runs pip, nvidia-smi
and compilers, which takes seconds, so only facts that are already in memory are taken.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "depyf", "triton", "numpy", "transformers", "vllm", "sglang", "torchao", "torchvision")
CONFIGS = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")
#: Beginnings of the names of environment variables that concern torch and what it calls.
VARIABLES = (
    "TORCH", "PYTORCH", "STRUCTDUMP_", "TRITON", "CUDA_", "CUBLAS", "CUDNN", "NCCL_", "HIP_", "ROCM_",
    "ROCR_", "HSA_", "MIOPEN", "AMDGCN", "OMP_", "MKL_", "KMP_", "GOMP_", "VLLM_", "SGLANG_", "AOT_",
    "INDUCTOR", "XLA_", "HABANA", "ASCEND", "CXX", "CC", "LD_PRELOAD", "RANK", "WORLD_SIZE", "LOCAL_RANK",
    "PYTHONHASHSEED",
)  # fmt: skip


def collect() -> dict[str, Any]:
    """Return the environment as `bundle.model.Environment` holds it, as plain data, unredacted.

    Takes a few milliseconds; devices are described only if the program has initialised them.

    Example::

        collect()["versions"]["torch"]  # '2.13.0+cpu'
    """
    return {
        "versions": versions(),
        "os": _os_name(),
        "cpu": _cpu_name(),
        "cpu_count": os.cpu_count(),
        "devices": _devices(),
        "drivers": _drivers(),
        "configs": _configs(),
        "variables": {k: v for k, v in sorted(os.environ.items()) if k.startswith(VARIABLES)},
    }


@functools.lru_cache(maxsize=1)
def versions() -> dict[str, str | None]:
    """Return the version of each package that matters; None for one that is not installed."""
    from structdump import __version__

    found: dict[str, str | None] = {
        "structdump": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
    }
    for package in PACKAGES:
        module = sys.modules.get(package)
        version = getattr(module, "__version__", None)
        try:
            found[package] = str(version) if version else metadata.version(package)
        except metadata.PackageNotFoundError:
            if package in ("torch", "depyf", "triton"):
                found[package] = None
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch_git"] = getattr(torch.version, "git_version", None)
    return found


def distributed_rank() -> tuple[int | None, int | None]:
    """Return rank and world size from torch.distributed, if the program has initialised it."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None, None
    return int(dist.get_rank()), int(dist.get_world_size())


@functools.lru_cache(maxsize=1)
def _os_name() -> str:
    try:
        release = platform.freedesktop_os_release()
        return f"{release.get('PRETTY_NAME', 'Linux')} ({platform.machine()}, kernel {platform.release()})"
    except OSError:
        return platform.platform()


@functools.lru_cache(maxsize=1)
def _cpu_name() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    names = ("model name", "Processor", "cpu model", "CPU part")
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(names)), None)


def _drivers() -> dict[str, str]:
    torch = sys.modules.get("torch")
    found: dict[str, str] = {}
    if torch is None:
        return found
    for name in ("cuda", "hip", "xpu"):
        value = getattr(torch.version, name, None)
        if value:
            found[name] = str(value)
    cudnn = getattr(torch.backends, "cudnn", None)
    if "cuda" in found and cudnn is not None and torch.cuda.is_initialized():
        found["cudnn"] = str(cudnn.version())
    try:
        first = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8").splitlines()[0]
        found["nvidia"] = next(word for word in first.split() if word[0].isdigit() and "." in word)
    except (OSError, IndexError, StopIteration):
        pass
    return found


def _devices() -> list[dict[str, Any]]:
    torch = sys.modules.get("torch")
    # Asking an accelerator that the program has not started would start it.
    if torch is None or not hasattr(torch, "cuda") or not torch.cuda.is_initialized():
        return []
    found = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        found.append(
            {
                "name": properties.name,
                "index": index,
                "memory": properties.total_memory,
                "capability": f"{properties.major}.{properties.minor}",
            }
        )
    return found


def _configs() -> dict[str, dict[str, Any]]:
    """Return what differs from the defaults, by `ConfigModule._get_dict` (torch/utils/_config_module.py).

    It also gives what torch itself set to the default: whether it did depends on what was compiled.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in CONFIGS:
        module = sys.modules.get(name)
        read = getattr(module, "_get_dict", None)
        if read is not None:
            values = read(skip_default=True)
            entries = getattr(module, "_config", {})
            found[name] = {k: _plain(v) for k, v in sorted(values.items()) if _is_set(entries.get(k), v)}
    return found


def _is_set(entry: Any, value: Any) -> bool:
    default = getattr(entry, "default", _is_set)
    return type(value) is not type(default) or bool(value != default)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    name = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{name}" if name else repr(value)
