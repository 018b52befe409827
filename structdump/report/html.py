"""One HTML file that shows a bundle, or two side by side: no network, nothing outside it, opens from disk.

The page's own code is in `templates/`. It gets two kinds of data, both compressed and in base64, so that
nothing a bundle holds is ever parsed as HTML: the texts in chunks, inflated when one is looked at, and the
head, which says what there is. A Content-Security-Policy lets exactly this style and this script run,
and nothing be loaded or turned into markup.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from structdump.bundle import codec
from structdump.bundle.loaded import LoadedBundle
from structdump.errors import UsageError
from structdump.report.html_payload import pairs, side
from structdump.report.html_texts import TextPack, squeeze

_ENDING = re.compile(r"(\.json)?(\.zst|\.gz|\.zip|\.log)?(\.journal)?$")
_TEMPLATES = Path(__file__).parent / "templates"
_STYLES = ("base", "layout", "tree", "text", "tables", "views", "reading", "source", "timeline")
# Later files use the names that earlier ones define; all share one scope.
_SCRIPTS = (
    "dom", "numbers", "store", "model", "lineage", "compare", "theme",
    "tokens", "graph", "lines", "text_view", "diff", "diff_view",
    "table", "bars", "tree", "sources", "links",
    "environment", "omissions", "overview", "compile", "facts", "stage",
    "kernels", "tuning", "timeline", "source", "search", "artifacts",
    "router", "keys", "main",
)  # fmt: skip


class Asset(NamedTuple):
    """The page's style or script, and its hash as a Content-Security-Policy names it."""

    content: Markup
    hash: str


def render_html(
    bundle: LoadedBundle, other: LoadedBundle | None = None, *, names: tuple[str, ...] = ("A", "B")
) -> Iterator[str]:
    """Yield the report, piece by piece: memory use does not grow with the texts.

    With `other`, the page shows both side by side, aligned by function, compile order and stage.
    `names` are what the bundles are called, such as their files' names.
    Raises BundleError when the texts of a bundle are damaged.

    Example: `"".join(render_html(structdump.load("run.json.zst"), names=("run.json.zst",)))`
    """
    bundles = [bundle] if other is None else [bundle, other]
    pack = TextPack()
    used = {a.digest for b in bundles for a in b.artifacts}
    texts = ((digest, text) for b in bundles for digest, text in b.texts.items() if digest in used)

    def head() -> str:
        data = {
            "sides": [side(b, name) for b, name in zip(bundles, (*names, "A", "B"), strict=False)],
            "pairs": pairs(bundle, other) if other is not None else None,
            "texts": pack.places,
        }
        return squeeze(codec.dumps(data))

    title = " and ".join(b.run.program or name for b, name in zip(bundles, (*names, "A", "B"), strict=False))
    yield from _template().generate(
        title=title[:200], style=_style(), script=_script(), chunks=pack.chunks(texts), head=head
    )


def write_html(
    target: Path,
    bundle: LoadedBundle,
    other: LoadedBundle | None = None,
    *,
    names: tuple[str, ...] = ("A", "B"),
    overwrite: bool = False,
) -> int:
    """Write the report to `target`, mode 0600, whole or not at all; return its size in bytes.

    Raises UsageError when `target` exists and is not to be overwritten, OSError when it can't be written.

    Example: `write_html(Path("report.html"), structdump.load("run.json.zst"))`
    """
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists; --force overwrites it")
    fd, part = tempfile.mkstemp(prefix=".structdump-", suffix=".part", dir=target.parent)
    try:
        with open(fd, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123  # takes over the descriptor
            for piece in render_html(bundle, other, names=names):
                file.write(piece)
            size = file.tell()
            file.flush()
            os.fsync(file.fileno())
        Path(part).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(part).unlink()
        raise
    return size


def file_name(bundle: Path) -> str:
    """Return what the report of a bundle is called, unless told: the bundle's name with `.html`.

    Example: `file_name(Path("runs/train.json.zst")) == "train.html"`
    """
    return f"{_ENDING.sub('', bundle.name) or 'report'}.html"


def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(_TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("report.html.j2")


@lru_cache(maxsize=1)
def _style() -> Asset:
    return _asset("\n".join(_read(f"css/{name}.css") for name in _STYLES))


@lru_cache(maxsize=1)
def _script() -> Asset:
    library = _read("vendor/diff-sequences.js")
    own = "\n".join(_read(f"js/{name}.js") for name in _SCRIPTS)
    return _asset(
        '"use strict";\n'
        f"const diffSequences = ((module) => {{\n{library}\nreturn module.exports.default;\n}})({{}});\n"
        f"(() => {{\n{own}\n}})();\n"
    )


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _asset(content: str) -> Asset:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return Asset(Markup(content), f"sha256-{digest}")  # noqa: S704  # the package's own files, no data
