"""Whether the ranks of a job compiled the same, and which differs first."""

from __future__ import annotations

import json

import pytest
from rank_bundles import code, compiled, graph, metrics, rank_bundle

import structdump
from structdump.cli import main
from structdump.errors import UsageError

COLLECTIVE = """class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[8]cuda:{rank}"):
        all_reduce: "f32[8]cuda:{rank}" = torch.ops._c10d_functional.{op}.default(arg0_1, '{how}', '{group}')
        wait: "f32[8]cuda:{rank}" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
        return (wait,)
"""


def collective(rank, group="0", *, op="all_reduce", how="sum", n=0):
    text = COLLECTIVE.format(rank=rank, group=group, op=op, how=how)
    return {**graph(rank), "name": f"collective {n}", "ops": {f"_c10d_functional.{op}": 1}, "text": text}


def job(tmp_path, artifacts, compiles=None, **options):
    """Merge ranks with these artifacts, a list per rank."""
    paths = [
        rank_bundle(tmp_path, r, a, compiles=None if compiles is None else compiles[r], **options)
        for r, a in enumerate(artifacts)
    ]
    return structdump.merge(paths, tmp_path / "job.json.zst").path


def test_ranks_that_compiled_the_same(tmp_path, capsys):
    path = job(tmp_path, [[graph(r), graph(r, 1), code(r), metrics(r)] for r in range(4)])
    report = structdump.diff_ranks(path)
    assert report.same
    assert report.groups == [[0, 1, 2, 3]]
    assert main(["diff", "--ranks", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "all ranks compiled the same graphs in the same order"


def test_the_graph_that_differs_is_shown(tmp_path, capsys):
    artifacts = [[graph(r), graph(r, 1), code(r)] for r in range(4)]
    artifacts[2] = [graph(2), graph(2, 1, op="tanh"), code(2)]
    path = job(tmp_path, artifacts)
    report = structdump.diff_ranks(path)
    assert report.groups == [[0, 1, 3], [2]]
    first = report.first
    assert (first.ranks, first.how, first.position, first.compile_id) == ([2], "graph", 0, "0/0")
    changed = first.compile.first.text.changed
    assert [line[0] + line.split("aten.")[1] for line in changed] == [
        "-relu.default(mm)",
        "+tanh.default(mm)",
    ]
    assert not any("cuda" in line and "@" not in line for line in changed)
    assert main(["diff", "--ranks", str(path)]) == 1
    out = capsys.readouterr().out
    assert "4 ranks: ranks 0-1, 3 agree" in out
    assert "rank 2 differs first, at compile 1: the graph of 0/0 forward is another" in out
    assert "torch.ops.aten.tanh.default(mm)" in out
    assert out.splitlines()[-1] == "the ranks differ"
    assert main(["diff", "--ranks", str(path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["same"] is False
    assert told["differences"][0]["ranks"] == [2]


def test_compiles_in_another_order(tmp_path, capsys):
    f, g, h = compiled("0/0", "f"), compiled("1/0", "g"), compiled("2/0", "h")
    swapped = [f, compiled("1/0", "h"), compiled("2/0", "g")]
    path = job(tmp_path, [[graph(r)] for r in range(3)], [[f, g, h], [f, g, h], swapped])
    first = structdump.diff_ranks(path).first
    assert (first.ranks, first.how, first.position) == ([2], "order", 1)
    assert (first.function, first.reference_function) == ("h", "g")
    main(["diff", "--ranks", str(path)])
    assert "at compile 2: it compiled 1/0 h, rank 0 compiled 1/0 g" in capsys.readouterr().out


@pytest.mark.parametrize(("mine", "how"), [(1, "missing"), (3, "extra")])
def test_a_rank_that_compiled_more_or_less(tmp_path, mine, how):
    known = [compiled(f"{n}/0", f"f{n}") for n in range(3)]
    path = job(tmp_path, [[graph(r)] for r in range(3)], [known[:2], known[:2], known[:mine]])
    first = structdump.diff_ranks(path).first
    assert (first.ranks, first.how, first.position) == ([2], how, min(mine, 2))


def test_the_rank_that_differs_first_comes_first(tmp_path):
    known = [compiled(f"{n}/0", f"f{n}") for n in range(3)]

    def artifacts(rank, odd=None):
        return [graph(rank, n, compile_id=f"{n}/0", op="tanh" if n == odd else "relu") for n in range(3)]

    path = job(tmp_path, [artifacts(0), artifacts(1), artifacts(2, 2), artifacts(3, 1)], [known] * 4)
    report = structdump.diff_ranks(path)
    assert [(d.ranks, d.position, d.compile_id) for d in report.differences] == [
        ([3], 1, "1/0"),
        ([2], 2, "2/0"),
    ]


def test_a_failed_compile_of_one_rank(tmp_path):
    bad = {**compiled(), "status": "failed", "error": {"type": "RuntimeError", "message": "on cuda:2"}}
    path = job(tmp_path, [[graph(r)] for r in range(3)], [[compiled()], [compiled()], [bad]])
    first = structdump.diff_ranks(path).first
    assert (first.ranks, first.how) == ([2], "status")


def test_the_same_failure_on_each_ranks_own_device(tmp_path):
    error = [{"type": "RuntimeError", "message": f"no kernel for cuda:{r}"} for r in range(2)]
    failed = [[{**compiled(), "status": "failed", "error": error[r]}] for r in range(2)]
    assert structdump.diff_ranks(job(tmp_path, [[graph(r)] for r in range(2)], failed)).same


# --- what is a rank's own, and what is not ---


def test_a_graph_on_another_ranks_device_differs(tmp_path):
    artifacts = [[graph(r), graph(r, 1)] for r in range(3)]
    artifacts[2][1] = graph(2, 1, device=0)
    report = structdump.diff_ranks(job(tmp_path, artifacts))
    assert report.first.ranks == [2]
    assert "cuda:0" in "".join(report.first.compile.first.text.changed)


def test_names_of_groups_are_a_ranks_own_but_not_their_order(tmp_path):
    same = job(tmp_path, [[collective(0, "1"), collective(0, "3", n=1)],
                          [collective(1, "2"), collective(1, "3", n=1)]])  # fmt: skip
    report = structdump.diff_ranks(same)
    assert report.same
    (tmp_path / "swap").mkdir()
    swapped = job(
        tmp_path / "swap",
        [
            [collective(0, "1"), collective(0, "3", n=1), collective(0, "1", n=2)],
            [collective(1, "2"), collective(1, "3", n=1), collective(1, "3", n=2)],
        ],
    )
    report = structdump.diff_ranks(swapped)
    assert not report.same
    assert "group 1" in "".join(report.first.compile.first.text.changed)
    assert any("process groups" in note for note in report.notes)


@pytest.mark.parametrize("change", [{"op": "reduce_scatter_tensor"}, {"how": "max"}])
def test_another_collective_differs(tmp_path, change):
    path = job(tmp_path, [[collective(0)], [collective(1)], [collective(2, **change)]])
    report = structdump.diff_ranks(path)
    assert report.groups == [[0, 1], [2]]


def test_rank_numbers_and_process_ids_do_not_count(tmp_path):
    def own(rank):
        text = f"def f(x):\n    return g(x, rank={rank}, world_size=4, pid={900 + rank})\n"
        return {**graph(rank), "text": text}

    assert structdump.diff_ranks(job(tmp_path, [[own(r)] for r in range(3)])).same


def test_a_number_that_is_not_the_ranks_own_counts(tmp_path):
    def own(rank, source):
        return {**graph(rank), "text": f"def f(x):\n    return broadcast(x, src_rank={source})\n"}

    assert not structdump.diff_ranks(job(tmp_path, [[own(0, 2)], [own(1, 2)], [own(2, 1)]])).same


def test_a_cache_hit_of_some_ranks_is_no_difference(tmp_path):
    cold = rank_bundle(tmp_path, 0, [graph(0), graph(0, 1), code(0)])
    warm = rank_bundle(tmp_path, 1, [graph(1)], verdict="warm")
    path = structdump.merge([cold, warm], tmp_path / "job.json.zst").path
    report = structdump.diff_ranks(path)
    assert report.same, report
    assert any("cache" in note for note in report.notes)


# --- mistakes ---


def test_mistakes(tmp_path, capsys):
    one = str(rank_bundle(tmp_path, 0))
    with pytest.raises(UsageError, match="structdump merge"):
        structdump.diff_ranks(one)
    assert main(["diff", "--ranks", one]) == 2
    assert main(["diff", one]) == 2
    assert main(["diff", "--ranks", one, one]) == 2
    assert "two bundles" in capsys.readouterr().err
