"""Says whether a capture could see everything the compiler did, and if not, what to set. Pure."""

from __future__ import annotations

from structdump.bundle.model import Completeness, Verdict
from structdump.sources.compiles import CompileBook

#: What makes torch and vLLM compile everything anew; see the sources named at `verdict`.
FRESH = {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "VLLM_DISABLE_COMPILE_CACHE": "1"}
CACHE_NAMES = {"fx_graph": "FX graph cache", "aot_autograd": "AOTAutograd cache"}

TORCH_HINT = (
    "set TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 to compile everything anew: "
    "a cache hit skips the passes, so their graphs exist nowhere"
)
VLLM_HINT = (
    "set VLLM_DISABLE_COMPILE_CACHE=1 as well: vLLM loads compiled models from a cache of its own, "
    "so that neither variable is enough without the other"
)
UNFINISHED_HINT = "the program ended or was cut off inside a compile; run it to the end if you can"


def verdict(book: CompileBook) -> Completeness:
    """Return verdict, reasons and hints; the counts are left for the recorder to fill in.

    "cold": no cache gave anything, so all that was compiled could be seen. "warm": every compile
    that asked a cache was answered from it. "partial": some were, or a compile did not end.
    "empty": nothing compiled.

    The variables are read by torch/compiler/config.py (2.9 to 2.13) and by vllm/envs.py.

    Example::

        >>> book = CompileBook()
        >>> book.cache_answered("0/0", "fx_graph", "hit", key="fabc")
        >>> verdict(book).verdict
        'warm'
    """
    compiles = book.records()
    warm: list[str] = []
    cold = 0
    for compile_id, caches in book.answers().items():
        hits = [CACHE_NAMES.get(c, c) for c, answers in caches.items() if "hit" in answers]
        misses = [c for c, answers in caches.items() if set(answers) - {"hit"}]
        if hits:
            warm.append(f"{compile_id}: loaded from the {' and the '.join(hits)}")
        # An AOTAutograd miss whose FX graphs all hit still skipped every Inductor pass.
        if (misses and "fx_graph" in misses) or (caches and not hits):
            cold += 1
    warm += book.loads
    unfinished = [f"{c.id}: no end of this compile was seen" for c in compiles if c.status == "unfinished"]
    hints = []
    if warm:
        hints.append(TORCH_HINT)
        if book.framework.get("vllm") is not None:
            hints.append(VLLM_HINT)
    if unfinished:
        hints.append(UNFINISHED_HINT)
    return Completeness(
        verdict=_verdict(bool(compiles or warm), bool(warm), bool(cold), bool(unfinished)),
        reasons=warm + unfinished,
        hints=hints,
    )


def _verdict(anything: bool, warm: bool, cold: bool, unfinished: bool) -> Verdict:
    if not anything:
        return "empty"
    if warm and not cold:
        return "warm"
    return "partial" if warm or unfinished else "cold"
