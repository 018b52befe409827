"""What the page knows before it opens a text: a bundle's head, its timeline and what answers to what."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from structdump.bundle import codec
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.model import Bundle
from structdump.errors import BundleError
from structdump.levels import LEVELS, cell
from structdump.report.pairs import pair_bundles
from structdump.report.timeline import timeline

_HEAD = {
    "producer", "run", "level", "config", "environment", "completeness",
    "omitted", "redactions", "hook_errors", "version",
}  # fmt: skip


def side(bundle: LoadedBundle, name: str) -> dict[str, Any]:
    """Return what the page shows of one bundle, as JSON-like data; `name` is what it is called there."""
    head: Bundle = Bundle.model_construct(**{key: getattr(bundle, key) for key in _HEAD})
    return {
        "name": name,
        **head.model_dump(include=_HEAD, exclude_none=True),
        "complete": bundle.complete,
        "compiles": [c.model_dump(exclude_defaults=True) | {"status": c.status} for c in bundle.compiles],
        "artifacts": [_artifact(a) for a in bundle.artifacts],
        "timeline": [list(span) for span in timeline(bundle)],
    }


def pairs(a: LoadedBundle, b: LoadedBundle) -> dict[str, Any]:
    """Return what of two bundles answers to what; see `Pairs`."""
    return pair_bundles(a, b)._asdict()


def _artifact(artifact: ArtifactView) -> dict[str, Any]:
    out = artifact.model_dump(exclude_defaults=True, exclude={"files"})
    if artifact.kernel is not None and artifact.kernel.best_config is None:
        found = artifact.best_config if artifact.kind != "best_config" else _config(artifact)
        if found:
            out["kernel"]["best_config"] = found
    elif artifact.kind == "best_config" and artifact.kernel is None:
        out["data"] = _config(artifact)
    if artifact.digest is None:
        out["needs"] = _lowest_level(artifact.kind, artifact.stage, artifact.phase, artifact.changed)
    return out


def _config(artifact: ArtifactView) -> dict[str, Any] | None:
    """Take a configuration from where it stands: structured, or as the text of a `.best_config` file."""
    if isinstance(artifact.data, dict):
        return artifact.data
    try:
        data = codec.loads((artifact.text or "").encode("utf-8", "replace"))
    except BundleError:
        return None
    return data if isinstance(data, dict) else None


@lru_cache(maxsize=4096)
def _lowest_level(kind: str, stage: str | None, phase: str | None, changed: bool | None) -> str | None:
    return next((level for level in LEVELS if cell(level, kind, stage, phase, changed) == "text"), None)
