"""Everything that torch reports of a process is in its bundle, on cold and on warm caches."""

from __future__ import annotations

import pytest
from conftest import WORKLOADS, Captured, python
from recall import recall

import structdump

pytestmark = pytest.mark.slow

SCENARIOS = {
    "eager ways": ["breaks_and_recompiles", "two_models_backwards_interleaved", "dynamic_shapes"],
    "special ways": ["compiled_autograd", "max_autotune", "freezing"],
}


@pytest.fixture(scope="module", params=SCENARIOS)
def runs(request, tmp_path_factory):
    """A cold run of some scenarios, and a warm one on the same caches."""
    folder = tmp_path_factory.mktemp("recall")
    found = {}
    for state in ("cold", "warm"):
        target = folder / f"{state}.json.zst"
        done = python(
            WORKLOADS / "scenarios.py",
            *SCENARIOS[request.param],
            caches=folder / "caches",
            cwd=folder,
            TORCH_TRACE=str(folder / state),
            STRUCTDUMP_LEVEL="full",
            STRUCTDUMP_REDACT="0",
            STRUCTDUMP_OUTPUT=str(target),
        )
        assert done.code == 0, done.err
        found[state] = Captured(done, structdump.load(target), folder / state, folder / "caches")
    return found


@pytest.mark.parametrize("state", ["cold", "warm"])
def test_nothing_that_torch_reports_is_missing(runs, state):
    found = recall(runs[state].path, runs[state].bundle)
    for sort, missing in found.missing.items():
        assert not missing, f"{sort} {found.row()[sort]}: {[(i, t[:300]) for i, t in missing]}"
    assert all(found.existed.values()), found.row()


def test_the_verdict_tells_cold_from_warm(runs):
    assert runs["cold"].bundle.completeness.verdict == "cold"
    warm = runs["warm"].bundle.completeness
    assert warm.verdict in ("warm", "partial")
    assert any("TORCHINDUCTOR" in hint for hint in warm.hints)


def test_nothing_failed_to_be_hooked(runs):
    for state in runs.values():
        assert [(e.hook, e.error) for e in state.bundle.hook_errors] == []
