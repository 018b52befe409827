"""Which names may stand in a shapes-only bundle, and the tokens that stand for all others.

What stays is listed, not what goes: torch's own names, one by one. A name made of torch's words is
the user's all the same, so nothing is judged by its parts, but for kernels, whose names Inductor
makes of whole names of ops.
"""

from __future__ import annotations

import builtins
import keyword
import math
import operator
import re
from functools import lru_cache

from structdump.bundle.redact_tokens import Tokens
from structdump.bundle.torch_names import known, op_bases

#: Names that torch gives, whatever the program is.
_GENERIC = re.compile(
    r"(?:primals|tangents|arg|args|buf|submod|s|u|zf|zuf|true_graph|false_graph|wrap_body|cond_true|cond_false"
    r"|fwd_body|bwd_body|subgraph|repeated_subgraph|sdpa_score|sdpa_mask|partitioned_[fb]w_subgraph"
    r"|_tensor_constant|_param_constant|_frozen_param|_opaque_obj|[fb]wd_rng_state|[fb]wd_base_offset|[fb]wd_seed"
    r"|lifted_tensor|token|pass|pass_pattern|piece|model|extern_kernels|custom_backend_passes_\w{2,6})(?:_?\d{1,5}){1,3}"
)
_FIXED = frozenset(
    {
        "self",
        "_in_spec",
        "_out_spec",
        "primals",
        "tangents",
        "inputs",
        "sizes",
        "scalars",
        "hooks",
        "packed_data",
    }
)
CLASSES = frozenset({"GraphModule", "inner_f", "joint_helper", "CompiledAutograd0", "Module", "lambda"})
_BUILTINS = frozenset(
    {
        "slice", "getattr", "device", "int", "float", "bool", "complex", "str", "len", "inf",
        "nan", "range", "tuple", "list", "dict", "set", "max", "min", "abs", "round", "Max", "Min",
    }
)  # fmt: skip
KEYWORDS = frozenset({*keyword.kwlist}) - {"print", "exec"}
_ROOTS = {"operator": frozenset(dir(operator)), "math": frozenset(dir(math))}
_PYTREE = frozenset({"fx_pytree.tree_flatten_spec", "pytree.tree_unflatten", "pytree.tree_flatten"})
_NUMBERED = re.compile(r"(?:_\d{1,5})+$")
_KERNEL = re.compile(
    r"(?:(?P<start>triton_(?:poi|red|per|tem|for|mix|split_scan)_fused|cpp(?:_\w{3,4})?_fused|mtl_fused)_)?(?P<ops>\w*?)(?P<end>(?:_\d{1,5})?)"
)
_TEMPLATE = re.compile(r"(?:triton|extern_kernels|cutlass|cpp|aten|rocm|ck|pallas)[_.]")
_EXCEPTIONS = frozenset(
    n for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, BaseException)
)
_HASH = re.compile(r"[0-9a-z]{40,64}|[0-9a-f]{32}")


class Names:
    """The names of one bundle: torch's stay, any other becomes a token, the same one each time.

    With `again`, what already looks like such a token stays: the bundle went through this before.

    Example::

        names = Names()
        names.op("aten.add.Tensor")  # 'aten.add.Tensor'
        names.op("mylib.secret.default")  # 'custom.op_1.default'
    """

    def __init__(self, *, again: bool = False) -> None:
        self._tokens = Tokens()
        self._again = again
        self.derived: set[str] = set()  # names of values that say their op and nothing more

    @property
    def counts(self) -> dict[str, int]:
        """How many names of each kind were replaced."""
        return {f"name:{label}": count for label, count in self._tokens.counts.items()}

    def token(self, label: str, name: str) -> str:
        """Return the token for a name in prose: `<function-1>`."""
        if self._again and re.fullmatch(rf"<{label}-\d{{1,9}}>(?:\.py)?", name):
            return name
        return self._tokens.replace(label, name)

    def identifier(self, label: str, name: str) -> str:
        """Return the token for a name in code: `local_1`."""
        if self._again and re.fullmatch(rf"{label}_\d{{1,9}}", name):
            return name
        return self._tokens.replace(label, name)[1:-1].replace("-", "_")

    def op(self, name: str) -> str:
        """Return an op, a function or a method as graphs count them."""
        if is_op(name) or name in known("tensor") or is_function(name) or is_generic(name):
            return name
        head, dot, last = name.rpartition(".")
        if dot and last == "default":
            return f"{self.custom(head)}.default"
        if dot and "." not in head and last in known("tensor"):
            return f"{self.identifier('local', head)}.{last}"
        return self.function(name) if dot else self.identifier("attr", name)

    def custom(self, name: str) -> str:
        """Return the token for an op that is none of torch's, named without its overload."""
        if self._again and re.fullmatch(r"custom\.op_\d{1,9}", name):
            return name
        return f"custom.{self.identifier('op', name)}"

    def function(self, name: str) -> str:
        """Return the token for a function that a graph calls."""
        return self.identifier("function", name)

    def kernel(self, name: str) -> str:
        """Return a kernel's name if Inductor made it of ops, else a token."""
        return name if is_kernel(name) else self.identifier("kernel", name)

    def node(self, name: str) -> str:
        """Return the name of a graph's node as `graph` writes it."""
        return name if name in self.derived or is_generic(name) else self.identifier("local", name)

    def record(self, label: str, name: str) -> str:
        """Return the name of a stage, a pass or an artifact if it is torch's, else a token."""
        return name if is_record(name) else self.token(label, name)


@lru_cache(maxsize=8192)
def is_op(name: str) -> bool:
    """Whether it is an op of torch's, with or without its overload.

    Example::

        >>> is_op("aten.add.Tensor"), is_op("aten.secret.default")
        (True, False)
    """
    namespace, _, rest = name.partition(".")
    return (
        f"{namespace}.{rest.partition('.')[0]}" in known("ops") and name.count(".") <= 2 and is_dotted(name)
    )


@lru_cache(maxsize=8192)
def is_function(name: str) -> bool:
    """Whether it is a function or a constant of torch, of `operator` or of `math`."""
    root, _, rest = name.partition(".")
    if root == "torch":
        first = rest.partition(".")[0]
        return first in known("torch") and first not in ("ops", "classes") and is_dotted(name)
    return rest in _ROOTS.get(root, ()) or name in _BUILTINS or name in _PYTREE


def is_dotted(name: str) -> bool:
    """Whether it is identifiers with dots between them, in ASCII."""
    return name.isascii() and all(part.isidentifier() for part in name.split("."))


@lru_cache(maxsize=8192)
def is_generic(name: str) -> bool:
    """Whether torch gives a value or a submodule this name in any program."""
    return name in _FIXED or bool(_GENERIC.fullmatch(name))


@lru_cache(maxsize=8192)
def is_derived(name: str, op: str) -> bool:
    """Whether a value is named after the op that makes it, which says nothing more.

    Example::

        >>> is_derived("mul_3", "aten.mul.Tensor"), is_derived("routing", "aten.mul.Tensor")
        (True, False)
    """
    base = _NUMBERED.sub("", name)
    if is_op(op):  # graphs of such ops hold no names of the program's
        return base.removesuffix("_default").removesuffix("_tensor") in op_bases()
    last = op.rpartition(".")[2]
    return base.strip("_") == last.strip("_") and (last in known("tensor") or is_function(op))


@lru_cache(maxsize=8192)
def is_kernel(name: str) -> bool:
    """Whether a kernel's name is made of torch's ops alone.

    Example::

        >>> is_kernel("triton_poi_fused_add_mul_0"), is_kernel("triton_poi_fused_router_0")
        (True, False)
    """
    if _HASH.fullmatch(name) or is_op(name):
        return True
    match = _KERNEL.fullmatch(name)
    if match and match["start"] and _made_of_ops(match["ops"]):
        return True
    start = _TEMPLATE.match(name)
    return bool(start) and _made_of_ops(_NUMBERED.sub("", name[start.end() :] if start else ""))


_KERNEL_WORDS = frozenset(
    {
        "persistent",
        "tma",
        "ws",
        "plus",
        "bias",
        "dequant",
        "device",
        "int",
        "cpu",
        "to",
        "mm",
        "Packed",
        "Micro",
        "Gemm",
        "template",
        "Template",
        "Cpp",
        "fused",
        "grouped",
        "bmm",
        "conv",
        "unfused",
    }
)


def _made_of_ops(text: str) -> bool:
    """Whether a text is whole names of ops, joined by underscores; so is the empty one."""
    words = text.split("_")
    if len(words) > 200:
        return False
    bases = op_bases()
    reached = {0}
    for start in range(len(words)):
        if start in reached:
            for end in range(start + 1, min(len(words), start + 14) + 1):
                piece = "_".join(words[start:end])
                if not piece.strip("_") or piece in bases or piece in _KERNEL_WORDS:
                    reached.add(end)
    return len(words) in reached


@lru_cache(maxsize=8192)
def is_record(name: str) -> bool:
    """Whether torch, vLLM or structdump itself gives this name to a stage, a pass or a record."""
    if name in known("records") or name in known("named records") or name in known("passes"):
        return True
    if is_generic(name) or re.fullmatch(r"__compiled_fn_-?\d{1,6}", name):
        return True
    start = re.fullmatch(r"(pre insert_deferred_runtime_asserts) (__compiled_fn_-?\d{1,6})", name)
    parts = re.fullmatch(r"(\w+)\.(before|after|before_cleanup|after_cleanup)", name)
    return bool(start) or (parts is not None and parts[1] in known("passes"))


def is_exception(name: str) -> bool:
    """Whether a type of exception is Python's or torch's."""
    root, _, rest = name.partition(".")
    if name in _EXCEPTIONS or name in known("exceptions"):
        return True
    return root == "torch" and rest.partition(".")[0] in known("torch") and is_dotted(name)
