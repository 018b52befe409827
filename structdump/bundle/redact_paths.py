"""Paths: which part of one is private, the patterns that find them in text, and their shortening."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from structdump.bundle.redact_gate import gate
from structdump.bundle.redact_rules import LABELS
from structdump.bundle.redact_tokens import Tokens

_TOKEN = rf"<(?:{'|'.join(label for label in LABELS if label != 'path')})-\d{{1,9}}>"
_RUN = rf"[\w.+@~%=,/-]*(?:{_TOKEN}[\w.+@~%=,/-]*){{0,20}}"
# A folder name may hold spaces: words after a space belong to the path if a slash follows them.
_SPACED = rf"(?:(?: (?!-)[\w.+&()-]{{1,40}}){{1,6}}/{_RUN}){{0,4}}"
# A home directory begins wherever these stand; another path only where a path can begin.
_POSIX = re.compile(
    r"/(?:(?=(?:home|Users)/{1,4}[\w.@<])|(?<![\w)\]}.~*/\\%$#&?+>-]/)|(?<= [12&]>/)"
    r"|(?:(?<=[ \"'=,]-[A-Za-z]/)|(?<=^-[A-Za-z]/))(?=[A-Za-z])"
    rf"|(?<=\\[nrt]/)|(?<=:///)|(?<=hash\([0-9a-f]{{8}}\)/))(?=[\w.@]){_RUN}{_SPACED}"
)
_TILDE = re.compile(r"~(?<![\w)\]}>/.]~)(?:[a-z][a-z0-9_-]{1,31})?/(?=[\w.@])[\w.+@~%=,/-]*")
_VARIABLE = re.compile(r"\$\{?HOME\}?/(?=[\w.@])[\w.+@~%=,/-]*")
_ESCAPED = re.compile(
    r"\\(?=\\{0,15}/)(?P<rest>\\{0,15}/[\w.+@~%=,-]{1,255}(?:\\{1,16}/[\w.+@~%=,-]{1,255}){1,64})"
)
_ENCODED = re.compile(r"(?i)%2F[\w.+@~-]{1,255}(?:%2F(?:[\w.+@~-]|%(?!2F)[0-9a-f]{2}){1,255}){1,64}")
_WINDOWS = re.compile(
    r":(?:(?<=[A-Z]:)(?<![A-Za-z][A-Z]:)|(?<=[A-Za-z]:)(?=\\{1,16}Users\\))(?P<sep>\\{1,16})"
    r"(?P<rest>(?:[\w.+@~()-][\w.+@~ ()-]{0,254}(?P=sep)){1,64}[\w.+@~-]{0,255})"
)
# As tracebacks and graphs name a file that was run by a relative path.
_FRAME = re.compile(
    r"File(?:: | \\?\")(?P<folder>(?![/<~.])[\w.@+ -]{1,255}(?:/[\w.@+ -]{1,255}){0,20})"
    r"(?=/[^/\n\":]{1,255}(?:\\?\"|:\d))"
)
# As guards name one (torch/_dynamo/guards.py, get_verbose_code_part): without the folders that torch's own
# path begins with, too; and as messages do.
_SHORTENED = re.compile(
    r"# (?P<spaced>(?![/<~.])[\w.@+ -]{1,255}(?:/[\w.@+ -]{1,255}){0,20})(?=/[^/\n\":]{1,255}\.py:\d+ in )"
    r"|(?<![\w.@+~<>/%$:-])(?P<folder>(?!\.)[\w.@+-]{1,255}(?:/[\w.@+-]{1,255}){0,20})(?=/[\w.@+-]{1,255}\.py:\d)"
)
_NAMES_SHORTENED = gate([r"[\w.@+ -]/[^/\n]{1,255}\.py:\d"])
_NAMES_FRAME = gate([r"File(?:: | \\?\")[^/<~.]"])
_RELATIVE = re.compile(r"(?:[\w.+@~-]+/)+[\w.+@~-]+")
_OWNER = re.compile(r"(?<=torchinductor_)(?!root(?:/|$)|<)[^/\\%\s]+")

# Under these, folders say how a machine is installed, not whose it is.
_PUBLIC_ROOTS = re.compile(
    r"/(?:usr|lib|lib32|lib64|libx32|bin|sbin|proc|dev|sys|etc|boot|nix/store|run"
    r"|opt/(?:conda|miniconda3?|anaconda3?|miniforge3?|mambaforge|venv|rocm[\w.-]*|nvidia|intel|python|homebrew"
    r"|hostedtoolcache|amazon|cuda[\w.-]*|ompi|hpcx|local|pytorch|triton|vllm)"
    r"|var/(?:lib|log|run|cache)|Library|System|Applications)(?=/|$)"
)
_HOME = re.compile(r"/(?:home|Users)/(?=[\w.@<])")
# … but a public root may hold homes all the same.
_HOME_WITHIN = re.compile(r"/(?:home|Users|people)/[^/]")
# Folders that name nobody; what lies deeper in them is private.
_FOLDERS = """
    / /tmp /var /var/tmp /private /private/tmp /private/var /private/var/tmp /root /home /Users /mnt
    /media /data /opt /srv /work /workspace /app /scratch /Volumes /content /kaggle /code /src
"""
_PUBLIC_FOLDERS = frozenset(_FOLDERS.split())
# Routes of web services, and divisions without spaces.
_ROUTE = re.compile(r"/(?:v\d+|api|docs|health|metrics|definitions|components|\$defs|[a-z]|\d+)(?=/|$)")
# From here on a path is the same on every machine.
_KEPT_TAIL = re.compile(
    r"/(?:(?=torchinductor_[^/]+(?:/|$))|(?=torch_compile_cache/)|(?=lib/python3\.\d+/)"
    r"|(?=torch/(?:_[a-z]\w*|nn|fx|autograd|optim|distributed|utils|export|compiler|backends|csrc|lib|include"
    r"|cuda|ao)/)|(?<=/vllm/)(?=vllm/)|(?<=/depyf/)(?=depyf/)|(?<=/triton/python/)(?=triton/)"
    r"|(?<=/sglang/python/)(?=sglang/)|(?<=/transformers/src/)(?=transformers/))"
)
# Of a file of torch's own, guards may leave out torch/ as well.
_WITHIN_TORCH = re.compile(
    r"_(?:dynamo|inductor|functorch|higher_order_ops|subclasses|export|library|prims|refs|decomp|logging)(?:/|$)"
)
_PACKAGES = re.compile(r"/(?=(?:site|dist)-packages/)")
# Names with these endings are files; their name stays, since compile records need it.
_ENDINGS = """
    a bat best_config bin c cc cfg cmd conf cpp csv cu cubin cuh cxx diff dll dylib egg err exe fatbin
    gguf gz h hh hip hpp hsaco html ini ipynb j2 jinja journal json jsonl kernel_perf ll llir lock log
    md metal mlir npy npz o onnx out parquet patch pickle pid pkl png ps1 pt pt2 pth ptx py pyc pyi pyx
    rst safetensors sh so sock spv svg tar toml tsv ttgir ttir txt whl yaml yml zip zst
"""
_FILE_ENDINGS = frozenset(_ENDINGS.split())
_VERSIONED_LIBRARY = re.compile(r".+\.so(?:\.\d+)+")
_MEMO_LIMIT = 50_000


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
    if _PUBLIC_ROOTS.match(path) and not _HOME_WITHIN.search(path):
        return None
    body = path.rstrip("/")
    folder, _, name = body.rpartition("/")
    file = is_file(name)
    if not folder or body in _PUBLIC_FOLDERS or (_ROUTE.match(path) and not file):
        return None
    cut = _kept_from(path)
    if cut < 0:
        cut = len(folder) if file else len(body)
    private = path[:cut]
    return None if not private or private in _PUBLIC_FOLDERS else Parts(private, path[cut:])


def _kept_from(path: str) -> int:
    packages = [match.start() for match in _PACKAGES.finditer(path)]
    if packages:
        return packages[-1]
    kept = _KEPT_TAIL.search(path)
    return kept.start() if kept else -1


def is_file(name: str) -> bool:
    """Whether a name ends as those of files do, and not as a folder's."""
    stem, _, ending = name.rpartition(".")
    return bool(stem) and (ending.lower() in _FILE_ENDINGS or bool(_VERSIONED_LIBRARY.fullmatch(name)))


class Paths:
    """Shortens the paths in texts; remembers each, since graphs name the same files on every other line."""

    def __init__(self, tokens: Tokens, home: str = "") -> None:
        self._tokens = tokens
        self._home = home
        self._memo: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return the text with its paths shortened."""
        if "/" in text:
            if _NAMES_FRAME(text):
                text = _FRAME.sub(self._frame, text)
            text = self._posix(text)
            if _NAMES_SHORTENED(text):
                text = _SHORTENED.sub(self._shortened, text)
            if "~" in text:
                text = _TILDE.sub(self._tilde, text)
            if "$" in text:
                text = _VARIABLE.sub(self._tilde, text)
        if "\\" in text:
            text = _WINDOWS.sub(self._windows, text)
            text = _ESCAPED.sub(self._escaped, text)
        if "%" in text:
            text = _ENCODED.sub(self._encoded, text)
        return text

    def relative(self, path: str) -> str:
        """Shorten a relative path to a file: its folders are the user's too. Other text stays."""
        folder, _, name = path.rpartition("/")
        if not folder.strip("./") or not is_file(name) or not _RELATIVE.fullmatch(path):
            return path
        return f"{self._folder(folder)}/{name}"

    def _folder(self, folder: str) -> str:
        """Shorten a relative folder up to what is the same on every machine."""
        cut = 0 if _WITHIN_TORCH.match(folder) else _kept_from(f"/{folder}/")
        if cut < 0:
            return self._tokens.replace("path", folder)
        return (self._tokens.replace("path", folder[: cut - 1]) if cut else "") + folder[max(cut - 1, 0) :]

    def _shorten(self, path: str) -> tuple[str, str] | None:
        """The token of the private head and the tail, or None if the path may stay."""
        parts = split(re.sub("/{2,}", "/", path) if "//" in path else path)
        if parts is not None:
            token = self._tokens.replace("path", parts.private)
            return token, self._disown(self._inner_home(parts.tail))
        owned = self._disown(path)
        return None if owned == path else ("", owned)

    def _inner_home(self, tail: str) -> str:
        home = _HOME.search(tail)
        return tail[: home.start()] + self._posix(tail[home.start() :]) if home else tail

    def _disown(self, path: str) -> str:
        if "torchinductor_" not in path:
            return path
        return _OWNER.sub(lambda match: self._tokens.replace("user", match.group()), path)

    def _posix(self, text: str) -> str:
        memo, again = self._memo, 0

        def found(match: re.Match[str]) -> str:
            nonlocal again
            path = match.group()
            known = memo.get(path)
            if known is None:
                known = self._whole(path)
                if len(memo) > _MEMO_LIMIT:
                    memo.clear()
                memo[path] = known
            elif known != path:
                again += 1
            return known

        text = _POSIX.sub(found, text)
        if again:
            self._tokens.count("path", again)
        return text

    def _whole(self, found: str) -> str:
        first, space, rest = found.partition(" ")
        if space and (split(first) is None or is_file(first.rpartition("/")[2])):
            return self._whole(first) + self._posix(space + rest)
        for separator in ("=/", ",/"):
            before, both, after = found.partition(separator)
            if both:
                return self._whole(before) + separator[0] + self._whole("/" + after)
        path = found.rstrip(".,=+-")
        short = self._shorten(path)
        return found if short is None else "".join(short) + found[len(path) :]

    def _frame(self, match: re.Match[str]) -> str:
        lead = match.group()[: match.start("folder") - match.start()]
        return lead + self._folder(match.group("folder"))

    def _shortened(self, match: re.Match[str]) -> str:
        folder = match["spaced"] or match["folder"]
        return match.group()[: -len(folder)] + self._folder(folder)

    def _tilde(self, match: re.Match[str]) -> str:
        head, _, rest = match.group().partition("/")
        home = self._home if head in ("~", "$HOME", "${HOME}") else ""
        short = self._shorten(f"{home or '/home/' + head.strip('~${}').lower()}/{rest}")
        return match.group() if short is None else "".join(short)

    def _windows(self, match: re.Match[str]) -> str:
        separator = match.group("sep")
        return self._spelled(match, ":", match.group("rest"), separator, "/")

    def _escaped(self, match: re.Match[str]) -> str:
        rest = match.group("rest")
        separator = "\\" + rest[: rest.index("/") + 1]
        return self._spelled(match, "", match.group()[len(separator) :], separator, "/")

    def _spelled(self, match: re.Match[str], lead: str, path: str, separator: str, slash: str) -> str:
        short = self._shorten(slash + path.replace(separator, slash))
        return match.group() if short is None else lead + short[0] + short[1].replace(slash, separator)

    def _encoded(self, match: re.Match[str]) -> str:
        slash = match.group()[:3]
        short = self._shorten(unquote(match.group()))
        if short is None:
            return match.group()
        return short[0] + quote(short[1], safe="<>").replace("%2F", slash)
