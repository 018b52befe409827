"""Which part of a path is private: a pure function, and the patterns that find paths in text."""

from __future__ import annotations

import re
from typing import NamedTuple

_RUN = r"[\w.+@~%=,/-]*"
# A folder name may hold spaces: words after a space belong to the path if a slash follows them.
_SPACED = rf"(?:(?: (?!-)[\w.+&()-]{{1,40}}){{1,6}}/{_RUN}){{0,4}}"
POSIX = re.compile(
    r"/(?:(?<![\w)\]}.~*/\\%$#&?-]/)|(?<=[ \"'=,]-[A-Za-z]/)|(?<=\\[nrt]/)|(?<=:///))(?=[\w.@])"
    + _RUN
    + _SPACED
)
# Wherever these stand, even amid other characters, a home directory begins.
WITHIN = re.compile(r"/(?:home|Users)/(?=[\w.@])" + _RUN)
TILDE = re.compile(r"(?:(?<![\w)\]}/.])~[a-z]?[\w-]{0,31}|\$\{?HOME\}?)/(?=[\w.@])" + _RUN)
ESCAPED = re.compile(r"(?:\\{1,4}/[\w.+@~%=,-]{1,255}){2,64}")
ENCODED = re.compile(r"(?i)%2F[\w.+@~-]{1,255}(?:%2F(?:[\w.+@~-]|%(?!2F)[0-9a-f]{2}){1,255}){1,64}")
WINDOWS = re.compile(
    r"(?<![A-Za-z])[A-Z]:(?P<sep>\\{1,4})(?:[\w.+@~()-][\w.+@~ ()-]{0,254}(?P=sep)){1,64}[\w.+@~()-]{0,255}"
)
RELATIVE = re.compile(r"(?:[\w.+@~-]+/)+[\w.+@~-]+")
OWNED = re.compile(r"(?<=torchinductor_)(?!root\b|<)[^/\\%\s]+")

# Under these, folders say how a machine is installed, not whose it is.
PUBLIC_ROOTS = re.compile(
    r"/(?:usr|lib|lib32|lib64|libx32|bin|sbin|proc|dev|sys|etc|boot|nix/store|run"
    r"|opt/(?:conda|miniconda3?|anaconda3?|miniforge3?|mambaforge|venv|rocm[\w.-]*|nvidia|intel|python|homebrew"
    r"|hostedtoolcache|amazon|cuda[\w.-]*|ompi|hpcx|local|pytorch|triton|vllm)"
    r"|var/(?:lib|log|run|cache)|Library|System|Applications)(?=/|$)"
)
# … but a public root may hold homes all the same.
_HOME_WITHIN = re.compile(r"/(?:home|Users|people)/[^/]")
# Folders that name nobody; what lies deeper in them is private.
_PUBLIC_FOLDERS = frozenset(
    "/ /tmp /var/tmp /private/tmp /private/var/tmp /var /private /private/var /root /home /Users /mnt /media /data /opt"
    " /srv /work /workspace /app /scratch /Volumes /content /kaggle /code /src".split()
)
# Routes of web services, and what a division looks like without spaces.
_ROUTE = re.compile(r"/(?:v\d+|api|docs|health|metrics|definitions|components|\$defs|[a-z]|\d+)(?=/|$)")
# From here on a path is the same on every machine.
_KEPT_TAIL = re.compile(
    r"/(?:(?=torchinductor_[^/]+(?:/|$))|(?=torch_compile_cache/)|(?=lib/python3\.\d+/)"
    r"|(?=torch/(?:_[a-z]\w*|nn|fx|autograd|optim|distributed|utils|export|compiler|backends|csrc|lib|include|cuda|ao)/)"
    r"|(?<=/vllm/)(?=vllm/)|(?<=/depyf/)(?=depyf/)|(?<=/triton/python/)(?=triton/)|(?<=/sglang/python/)(?=sglang/)"
    r"|(?<=/transformers/src/)(?=transformers/))"
)
_PACKAGES = re.compile(r"/(?=(?:site|dist)-packages/)")
# Names with these endings are files; their name stays, since compile records need it.
FILE_NAME = re.compile(
    r"(?i)[^/]*\.(?:py[cix]?|ipynb|jsonl?|log|txt|md|rst|c|cc|cpp|cxx|h|hh|hpp|cu|cuh|hip|so(?:\.\d+)*|a|o|dylib|dll|exe"
    r"|toml|ya?ml|ini|cfg|conf|zst|gz|zip|tar|whl|egg|pth?|pt2|bin|onnx|safetensors|gguf|ptx|cubin|hsaco|fatbin|ttg?ir|llir"
    r"|ll|mlir|sh|csv|tsv|html|sock|lock|pid|best_config|kernel_perf|pkl|pickle|npy|npz|parquet|svg|png|jinja|j2|metal"
    r"|spv|patch|diff|bat|cmd|ps1|out|err)"
)


class Parts(NamedTuple):
    """A path in two: `private` becomes a token, `tail` (empty, or from its slash on) stays."""

    private: str
    tail: str


def split(path: str) -> Parts | None:
    """Split an absolute path into its private head and the tail that may stay; None if all of it may stay.

    Example::

        split("/home/alex/.venv/lib/python3.12/site-packages/torch/x.py")
        # Parts("/home/alex/.venv/lib/python3.12", "/site-packages/torch/x.py")
        split("/home/alex/work/train.py")   # Parts("/home/alex/work", "/train.py")
        split("/usr/lib/python3.12/os.py")  # None
    """
    if PUBLIC_ROOTS.match(path) and not _HOME_WITHIN.search(path):
        return None
    body = path.rstrip("/")
    folder, _, name = body.rpartition("/")
    is_file = bool(FILE_NAME.fullmatch(name))
    if not folder or body in _PUBLIC_FOLDERS or (_ROUTE.match(path) and not is_file):
        return None
    cut = _kept_from(path)
    if cut < 0:
        cut = len(folder) if is_file else len(body)
    private = path[:cut]
    return None if not private or private in _PUBLIC_FOLDERS else Parts(private, path[cut:])


def _kept_from(path: str) -> int:
    packages = [match.start() for match in _PACKAGES.finditer(path)]
    if packages:
        return packages[-1]
    kept = _KEPT_TAIL.search(path)
    return kept.start() if kept else -1
