"""A script for one kernel: its source, and the lines of the output code that its call depends on."""

from __future__ import annotations

import difflib
import math
import re

from structdump.analyze.repro import Repro
from structdump.analyze.repro_graph import parsed
from structdump.analyze.repro_script import environment, header
from structdump.analyze.repro_slice import DTYPES, Slice, signature
from structdump.analyze.summary import why_not_kept
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.errors import UsageError


def kernel_repro(bundle: LoadedBundle, name: str, compile_id: str | None = None) -> Repro:
    """Return a script that builds one Triton or C++ kernel and calls it once with random buffers.

    The buffers are those of the first call in the output code. Where the output code was not kept, those
    of a Triton kernel are made as large as its size hints say.

    Raises UsageError if the kernel is not there, is no Triton or C++ kernel, or was not kept.

    Example: `kernel_repro(structdump.load("run.json.zst"), "cpp_fused_relu_0").script`
    """
    kernel, more = _find(bundle, name, compile_id)
    made = Repro("", f"kernel {name}{f' of compile {kernel.compile_id}' if kernel.compile_id else ''}")
    if more:
        made.notes.append(f"{more} more kernels have this name; --compile chooses")
    code = _output_code(bundle, kernel, name)
    if code is not None:
        symbols = next((c.symbols for c in bundle.compiles if c.id == kernel.compile_id), {})
        try:
            body = Slice(code, name, symbols).script()
        except RecursionError:  # from a stranger's nesting, which the parser takes and the printer does not
            raise UsageError("the output code is nested too deeply") from None
    else:
        body = _by_hints(kernel, name)
        made.notes.append("the output code was not kept: buffers are as large as the size hints say")
    made.script = header(made.what, bundle, []) + "\n" + environment(bundle) + "\n" + body
    parsed(made.script, "the script")
    return made


def _find(bundle: LoadedBundle, name: str, compile_id: str | None) -> tuple[ArtifactView, int]:
    every = [k for k in bundle.kernels(role=None) if compile_id is None or k.compile_id == compile_id]
    found = [k for k in every if k.kernel and k.kernel.name == name]
    if not found:
        near = difflib.get_close_matches(name, [k.kernel.name for k in every if k.kernel], 3, 0.5)
        raise UsageError(f"no kernel {name!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
    kernel = next((k for k in found if k.digest), found[0])
    assert kernel.kernel is not None  # noqa: S101  # bundle.kernels returns no others
    if kernel.kernel.backend not in ("triton", "cpp"):
        raise UsageError(f"{name} is no Triton or C++ kernel but {kernel.kernel.backend}")
    if kernel.digest is None:
        raise UsageError(f"the source of {name} is not in the bundle: {why_not_kept(kernel, bundle.level)}")
    return kernel, len(found) - 1


def _output_code(bundle: LoadedBundle, kernel: ArtifactView, name: str) -> str | None:
    for a in bundle.artifacts:
        if a.kind == "output_code" and (a.compile_id, a.direction) == (kernel.compile_id, kernel.direction):
            text = a.text
            if text is not None and re.search(rf"^{re.escape(name)} = async_compile\.", text, re.MULTILINE):
                return text
    return None


def _by_hints(kernel: ArtifactView, name: str) -> str:
    text = kernel.text or ""
    hints = kernel.kernel.size_hints if kernel.kernel else None
    types = signature(text)
    if not hints or not types or re.fullmatch(r"[A-Za-z_]\w*", name) is None:
        raise UsageError(f"no output code in the bundle calls {name} from Python")
    elements = math.prod(hints.values())
    values = []
    for argument, kind in types.items():
        if kind.startswith("*"):
            dtype = DTYPES.get(kind[1:], "float32")
            values.append(f"rand_strided(({elements},), (1,), torch.{dtype}, 'cuda:0')")
        elif kind != "constexpr":
            values.append(str(hints.get(argument.removesuffix("numel"), elements)))
    rows = "".join(f"        {v},\n" for v in values)
    return (
        "import torch\nfrom torch._C import _cuda_getCurrentRawStream as get_raw_stream\n"
        "from torch._dynamo.testing import rand_strided\n"
        "from torch._inductor.async_compile import AsyncCompile\n\n"
        f"async_compile = AsyncCompile()\n"
        f"{name} = async_compile.triton({name!r}, {text!r}, device_str='cuda')\n"
        "async_compile.wait(globals())\n\n\ndef main():\n    torch.manual_seed(0)\n"
        f"    {name}.run(\n{rows}        stream=get_raw_stream(0),\n    )\n"
        f'    torch.accelerator.synchronize()\n    print("called {name}")\n'
        '\n\nif __name__ == "__main__":\n    main()\n'
    )
