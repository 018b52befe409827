"""How long `structdump diff` takes on two bundles of 20 MB of text each, whatever differs between them.

    python benchmarks/diff_speed.py [MB]

The texts are a Llama's graphs and kernels from an H200 (tests/data), 40 compiles with other shapes each.
Prints seconds for opening both bundles and for the comparison, the interpreter not included.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from dump_samples import members  # noqa: E402 # found by the line above

from structdump.analyze.diff import diff  # noqa: E402
from structdump.bundle import codec  # noqa: E402
from structdump.bundle.journal import Journal  # noqa: E402
from structdump.bundle.writer import write_bundle  # noqa: E402
from structdump.report.diff_terminal import lines_of  # noqa: E402

STAGES = (
    ("captured", "__compiled_fn_1.__compiled_fn_1_ee7c7c07_a36c_4779_ba84_061dff9104d5.0.py"),
    ("pre_grad", "__compiled_fn_1.BEFORE_PRE_GRAD.0.py"),
    ("forward", "__compiled_fn_1.Forward_graph.0.py"),
    ("post_grad", "__compiled_fn_1.AFTER_POST_GRAD.0.py"),
)
Change = Callable[[str], str]


def same(text: str) -> str:
    return text


def renumbered(text: str) -> str:
    """Another number in every name, and another home: nothing that counts."""
    return re.sub(r"\b(?!r\d_|arg\d_)([a-z]\w*_)(\d+)\b", lambda m: f"{m[1]}{int(m[2]) + 700}", text).replace(
        "/home/alex", "/home/sam"
    )


def one_more_op(text: str) -> str:
    """An `add` at the top, which renumbers every later one."""
    text = re.sub(r"\b(add|mul|mm)_(\d+)\b", lambda m: f"{m[1]}_{int(m[2]) + 1}", text)
    first = re.search(r"^        (\w+): (\"[^\"]*\") = ", text, re.MULTILINE)
    if first is None:
        return text
    line = f"        add_0: {first[2]} = torch.ops.aten.add.Tensor({first[1]}, 1)\n"
    at = text.index("\n", first.end()) + 1
    return text[:at] + line + text[at:]


def other_constants(text: str) -> str:
    """Another constant in every line that has one: all lines differ."""
    return re.sub(r"(?<=, )(\d+)\b", lambda m: str(int(m[1]) + 1), text)


def backwards(text: str) -> str:
    """The lines in reverse: nothing stands where it was."""
    return "\n".join(reversed(text.split("\n")))


def records(size: int, change: Change) -> Iterator[dict[str, Any]]:
    texts = members("llama_h200")
    sources = [t for n, t in texts.items() if ".kernel_" in n and n.endswith(".py") and len(t) < 10_000]
    kernels = [t.split("\ndef get_args(")[0] for t in sources]
    head = {
        "t": "head",
        "level": "full",
        "producer": {"name": "structdump", "version": "0"},
        "run": {"id": "r"},
    }
    yield head
    seq = written = 0
    compiles = []
    while written < size:
        number = len(compiles)
        compiles.append({"id": f"{number}/0", "function": {"name": f"layer_{number}"}, "status": "ok"})
        for kind, stage, source in [
            *(("graph", stage, texts[name]) for stage, name in STAGES),
            *(("kernel", f"triton_{n}", kernels[n]) for n in range(number % 7, len(kernels), 7)),
        ]:
            text = change(source.replace("1024", str(1024 + 8 * number)))
            digest = codec.digest(text)
            artifact = {"seq": seq, "kind": kind, "name": stage, "stage": stage, "compile_id": f"{number}/0"}
            if kind == "kernel":
                name = re.search(r"^def (triton_\w+)\(", text, re.MULTILINE)
                facts = {"name": name[1] if name else stage, "backend": "triton"}
                artifact |= {"stage": "triton", "kernel": facts}
            yield {"t": "text", "digest": digest, "text": text}
            yield {"t": "artifact", "artifact": artifact | {"digest": digest, "bytes": len(text)}}
            written += len(source)
            seq += 1
    yield {"t": "state", "compiles": compiles, "completeness": {"verdict": "cold"}}
    yield {"t": "end"}


def make(directory: Path, size: int, change: Change) -> Path:
    journal = Journal.create(directory / f"{change.__name__}.journal")
    for record in records(size, change):
        journal.write(record)
    journal.close()
    target = directory / f"{change.__name__}.json.zst"
    return write_bundle(directory / f"{change.__name__}.journal", target, max_bytes=None).path


def main() -> None:
    size = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 20_000_000
    print(f"{'B differs from A by':24}{'s':>7}  result")
    with tempfile.TemporaryDirectory() as name:
        base = make(Path(name), size, same)
        for change in (same, renumbered, one_more_op, other_constants, backwards):
            other = base if change is same else make(Path(name), size, change)
            start = time.process_time()
            found = diff(base, other)
            lines = sum(1 for _ in lines_of(found))
            took = time.process_time() - start
            result = (
                "same" if found.same else f"{len(found.compiles)} compiles differ, {lines} lines of report"
            )
            print(f"{change.__name__:24}{took:7.2f}  {result}")


if __name__ == "__main__":
    main()
