"""Activation by environment variable, through entry points of PyTorch and of vLLM.

PyTorch loads its own at the end of `import torch` (torch/__init__.py, `_import_device_backends`,
since 2.5), and an exception in it would break the import. vLLM calls its own in each of its
processes, perhaps more than once (vllm/plugins/__init__.py). So this module imports nothing but
`os` at its top, looks at the variable first, and never raises.
"""

from __future__ import annotations

import os

SWITCH = "STRUCTDUMP_LEVEL"
#: The module whose import means that this process may compile.
TRIGGER = "torch._dynamo.convert_frame"
#: The module that holds depyf's `prepare_debug`.
DUMPER = "depyf.explain.enable_debugging"


def autoload() -> None:
    """Arm a capture if `STRUCTDUMP_LEVEL` asks for one; otherwise do and import nothing.

    Arming is lazy: nothing of structdump beyond this module is imported until `torch._dynamo` is.
    Never raises.
    """
    if _off():
        return
    try:
        _arm()
    except Exception as error:  # noqa: BLE001 # the user's `import torch` must succeed whatever is wrong here
        _warn(f"not active: {type(error).__name__}: {error}")


def vllm_plugin() -> None:
    """Let vLLM's debug dump be a bundle if `STRUCTDUMP_LEVEL` asks for one; otherwise do nothing.

    vLLM enters `depyf.prepare_debug(path)` around each compile if its debug dump path is set
    (vllm/compilation/monitor.py, vLLM 0.32); then the bundle of this process goes to that path. May be called
    again, has no effect then. Never raises.
    """
    if _off():
        return
    try:
        _arm()
        import wrapt

        wrapt.when_imported(DUMPER)(_divert)
    except Exception as error:  # noqa: BLE001 # vLLM must start whatever is wrong here
        _warn(f"not active in vLLM: {type(error).__name__}: {error}")


def _off() -> bool:
    return os.environ.get(SWITCH, "").strip().lower() in ("", "off")


def _arm() -> None:
    import sys

    # Inductor's compile workers import torch with this environment, and never trace anything.
    if any("compile_worker" in argument for argument in sys.orig_argv):
        return
    import wrapt

    wrapt.when_imported(TRIGGER)(_start)


def _start(_module: object) -> None:
    try:
        from structdump.sources.live import start_from_environment

        start_from_environment()
    except Exception as error:  # noqa: BLE001 # the import of torch._dynamo must succeed whatever is wrong here
        _warn(f"not active: {error}")


def _divert(_module: object) -> None:
    try:
        from structdump.sources.hooks.dumping import divert

        divert()
    except Exception as error:  # noqa: BLE001 # the import of depyf must succeed whatever is wrong here
        _warn(f"vLLM's debug dump stays as it is: {error}")


def _warn(message: str) -> None:
    import sys

    print(f"structdump: {message}", file=sys.stderr)  # noqa: T201 # the one line on stderr is the interface
