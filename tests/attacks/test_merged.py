"""Merged bundles that were damaged or forged: an error that has a name, or an answer."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rank_bundles import compiled, graph, rank_bundle

import structdump
from structdump.bundle import codec
from structdump.bundle.rank_view import all_ranks, of_rank
from structdump.bundle.reader import verify
from structdump.cli import main
from structdump.errors import StructdumpError


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of a merged bundle in which rank 2 differs."""
    folder = tmp_path_factory.mktemp("job")
    paths = [
        rank_bundle(folder, r, [graph(r), graph(r, 1, op="tanh" if r == 2 else "relu")]) for r in range(3)
    ]
    bundle = structdump.load(structdump.merge(paths, folder / "job.json.zst").path)
    document: dict[str, Any] = json.loads(
        codec.dumps(bundle.document().model_dump(by_alias=True, mode="json"))
    )
    return document


def use(document: dict[str, Any], folder: Path) -> None:
    """Do everything that can be done with a merged bundle; what is raised has a name."""
    path = folder / "forged.json"
    path.write_bytes(codec.dumps(document))
    try:
        bundle = structdump.load(path)
    except StructdumpError:
        return
    verify(path)
    for step in (
        lambda: structdump.diff_ranks(bundle),
        lambda: [of_rank(bundle, r).head() for r in all_ranks(bundle)],
        lambda: structdump.merge([bundle, bundle], folder / "again.json.zst", overwrite=True),
        lambda: list(structdump.scan(path, workers=0).rows("artifacts")),
    ):
        with contextlib.suppress(StructdumpError):
            step()
    for command in (["show"], ["list"], ["diff", "--ranks"], ["show", "--rank", "1"], ["show", "--json"]):
        assert main([*command, str(path)]) in (0, 1, 2, 3)


RUN: dict[str, Any] = {"rank": 0, "run": {}, "environment": {}}


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [RUN, RUN, RUN],
        [{**RUN, "rank": -5}, {**RUN, "rank": 1 << 80}],
        [{**RUN, "environment": {"versions": 3, "devices": "none"}}],
        [{**RUN, "environment": {"versions": None, "configs": {"m": None}}}],
        [{**RUN, "device": "cuda:(a+)+$"}, {**RUN, "rank": 1, "device": "cuda:\u0663"}],
        [{**RUN, "device": ""}, {**RUN, "rank": 2, "level": "\x1b[31mno level"}],
        [{**RUN, "notes": ["\x1b]0;title\x07"] * 500}],
    ],
)
def test_forged_runs(job: dict[str, Any], tmp_path: Path, capsys: Any, runs: list[Any]) -> None:
    use({**job, "runs": runs}, tmp_path)
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "Traceback" not in err


@pytest.mark.parametrize("ranks", [[], [7], [0, 0, 0], [-1], [1 << 80]])
def test_forged_ranks(job: dict[str, Any], tmp_path: Path, ranks: list[int]) -> None:
    changed = [{**a, "ranks": ranks, "varies": True} for a in job["artifacts"]]
    use({**job, "artifacts": changed}, tmp_path)
    use(
        {**job, "compiles": [{**c, "ranks": ranks, "seconds_by_rank": {"x": 1}} for c in job["compiles"]]},
        tmp_path,
    )


VALUES = st.none() | st.integers() | st.text(max_size=4) | st.lists(st.integers(0, 4), max_size=3)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["rank", "run", "level", "environment", "verdict", "complete", "device", "notes"]), VALUES
)
def test_any_value_in_a_run(job: dict[str, Any], tmp_path: Path, key: str, value: Any) -> None:
    use({**job, "runs": [{**job["runs"][0], key: value}, *job["runs"][1:]]}, tmp_path)


def test_verify_says_what_does_not_fit(job: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "job.json"

    def problems(**changes: Any) -> str:
        path.write_bytes(codec.dumps({**job, **changes}))
        return "; ".join(verify(path))

    assert problems() == ""
    assert "rank 2 has compiles or artifacts, and no run" in problems(runs=job["runs"][:2])
    assert "2 runs have the rank 0" in problems(runs=[job["runs"][0], *job["runs"]])
    assert "2 compiles have the id 0/0" in problems(compiles=job["compiles"] * 2)
    split = [
        {**job["compiles"][0], "ranks": [0, 1]},
        {**job["compiles"][0], "ranks": [2], "status": "failed"},
    ]
    assert problems(compiles=split) == ""


def test_a_compile_that_went_otherwise_in_one_rank_is_no_problem(tmp_path: Path) -> None:
    bad = {**compiled(), "cache": {"fx_graph": "hit"}}
    paths = [rank_bundle(tmp_path, 0), rank_bundle(tmp_path, 1, compiles=[bad])]
    done = structdump.merge(paths, tmp_path / "job.json.zst")
    assert len(structdump.load(done.path).compiles) == 2
    assert verify(done.path) == []
