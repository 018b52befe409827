"""Texts without what differs from run to run or says nothing of what was compiled.

Two runs of one program give equal canonical texts, on other machines and in other directories.
"""

from __future__ import annotations

import re

from structdump.bundle.normal import normalise

# A directory, told from a division by the words between its slashes. Patterns start with a literal, so
# that text without one costs little.
_DIRECTORY = re.compile(r"/(?<![\w.)\]/>]/)[\w.+@~-]+(?:/[\w.+@~-]+)*(?=/)")
_PATH_TOKEN = re.compile(r"<path-\d+>(?:/[\w.+@~-]+)*(?=/)")
_TOKEN = re.compile(r"<([a-z]+(?:[_-][a-z]+)*)-\d+>")
# Inductor names the files of its cache after a hash in base 32 (torch/_inductor/codecache.py).
_HASHED_FILE = re.compile(r"…/c[a-z2-7]{50,52}\b")
_FACTS = re.compile(r"'(?:backend_hash|torch_version)': '[^'\n]*',? ?")  # of the environment, not the kernel
_CPP_COMMENT = re.compile(r"[ \t]*//[^\n]*")
_PY_COMMENT = re.compile(r"^[ \t]*#[^\n]*\n", re.MULTILINE)
_OPERATION = re.compile(r"\b(op|buf)\d+(?:_op\d+)*\b")
_GUARD_TREE = re.compile(r"^[| ]*\+- ", re.MULTILINE)
_GUARD_CODE = re.compile(r"[ \t]+# [^\n]*$", re.MULTILINE)
_IDENTITY = re.compile(r"(?<=, )\d{9,20}\b")  # what id() gave, in ___check_type_id(…, 139674731777696)
_LATENCY = re.compile(r"^Guard latency = [^\n]*\n?", re.MULTILINE)
# An address of this process, which torch leaves in the environment (torch/_inductor/codecache.py).
_DATA_PTR = re.compile(r"^os\.environ\['_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR'\] = [^\n]*\n", re.MULTILINE)


def plain(text: str) -> str:
    """Return `text` without directories, uuids, addresses, hashes and numbers of redaction tokens.

    Example::

        >>> plain("/home/alex/work/train.py:3 at <path-2>/lib/a.py, <user-1>")
        '…/train.py:3 at …/a.py, <user>'
    """
    text = normalise(text)
    if "<path-" in text:
        text = _PATH_TOKEN.sub("…", text)
    if "/" in text:
        text = _DIRECTORY.sub("…", text)
    if "<" in text:
        text = _TOKEN.sub(r"<\1>", text)
    return _HASHED_FILE.sub("…/<hash>", text)


def kernel(text: str, name: str) -> str:
    """Return a kernel's source without its own name, its comments and facts of the environment."""
    text = text.replace(name, "KERNEL") if name else text
    text = _CPP_COMMENT.sub("", text) if "#include" in text else _PY_COMMENT.sub("", text)
    return _FACTS.sub("", plain(text)).strip("\n")


def ir(text: str) -> list[str]:
    """Return the lines of Inductor's IR without the numbers of its operations and buffers."""
    lines = _OPERATION.sub(r"\1", plain(text)).splitlines()
    return [line.rstrip() for line in lines if line.strip()]


def guards(text: str) -> list[str]:
    """Return the guards, one a line, sorted: their tree, code comments and object ids do not count.

    Example::

        >>> guards("| +- TYPE_MATCH: ___check_type_id(L['x'], 93933319527392)  # return x")
        ["TYPE_MATCH: ___check_type_id(L['x'], …)"]
    """
    text = _LATENCY.sub("", _GUARD_TREE.sub("", _GUARD_CODE.sub("", text)))
    lines = _IDENTITY.sub("…", plain(text)).split("\n")
    return sorted(line.strip() for line in lines if line.strip())


def readable(text: str) -> str:
    r"""Return guards or a script, whole, without object ids, addresses and the time that guards take.

    Example::

        >>> readable("| +- ___check_type_id(L['x'], 93933319527392)\nGuard latency = 3.1 us")
        "| +- ___check_type_id(L['x'], …)\n"
    """
    return _IDENTITY.sub("…", _LATENCY.sub("", _DATA_PTR.sub("", text)))
