"""Many bundles as one: what is shared, who has what, and that nothing of a rank is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bundles import code, compiled, graph, metrics, rank_bundle
from sample_bundles import write_small

import structdump
from structdump.bundle.lane import Lane
from structdump.bundle.patch import apply_patch, make_patch
from structdump.bundle.rank_text import canonical
from structdump.bundle.rank_view import of_rank
from structdump.bundle.reader import verify
from structdump.cli import main
from structdump.errors import CorruptError, NotABundleError, TruncatedError, UsageError

BUNDLES = Path(__file__).parent / "data" / "bundles"


@pytest.fixture
def job(tmp_path):
    """Eight ranks that compiled the same, merged."""
    paths = [rank_bundle(tmp_path, rank) for rank in range(8)]
    return structdump.merge(paths, tmp_path / "job.json.zst").path


def owners(bundle):
    return [(a.name, a.ranks) for a in bundle.artifacts]


# --- what is shared ---


def test_ranks_that_differ_in_their_device_alone_share_all(job):
    bundle = structdump.load(job)
    assert owners(bundle) == [
        (name, list(range(8))) for name in ("graph 0", "graph 1", "code 0", "compilation_metrics")
    ]
    assert all(a.varies for a in bundle.artifacts)
    assert len(bundle.texts) == 4
    assert [r.device for r in bundle.runs] == [f"cuda:{n}" for n in range(8)]
    assert [c.seconds_by_rank for c in bundle.compiles] == [{str(n): 1.0 + n for n in range(8)}]
    assert bundle.producer.source == "merge"
    assert bundle.run.rank is None
    assert verify(job) == []


@pytest.mark.parametrize("name", ["train_low", "conv_low", "failing_low", "quickstart_low"])
def test_eight_ranks_cost_less_than_a_third_more_than_one(tmp_path, name):
    one = BUNDLES / f"{name}.json.zst"
    paths = [shutil.copy(one, tmp_path / f"{n}.json.zst") for n in range(8)]
    done = structdump.merge(paths, tmp_path / "job.json.zst")
    assert done.bytes < 1.3 * one.stat().st_size
    bundle, original = structdump.load(done.path), structdump.load(one)
    assert [(a.kind, a.name, a.digest) for a in bundle.artifacts] == [
        (a.kind, a.name, a.digest) for a in original.artifacts
    ]
    assert dict(bundle.texts) == dict(original.texts)
    assert all(a.ranks == list(range(8)) and not a.varies for a in bundle.artifacts)


def test_a_graph_on_another_ranks_device_is_not_shared(tmp_path):
    artifacts = [[graph(r), graph(r, 1)] for r in range(3)]
    artifacts[2][1] = graph(2, 1, device=0)  # rank 2 put it where rank 0 works
    paths = [rank_bundle(tmp_path, r, a) for r, a in enumerate(artifacts)]
    bundle = structdump.load(structdump.merge(paths, tmp_path / "job.json.zst").path)
    assert owners(bundle) == [("graph 0", [0, 1, 2]), ("graph 1", [0, 1]), ("graph 1", [2])]
    assert "cuda:0" in bundle.artifacts[2].text


def test_what_one_rank_has_alone_says_so(tmp_path):
    paths = [rank_bundle(tmp_path, r, [graph(r), code(r)]) for r in range(3)]
    paths.append(rank_bundle(tmp_path, 3, [graph(3), graph(3, 7, op="tanh"), code(3)]))
    bundle = structdump.load(structdump.merge(paths, tmp_path / "job.json.zst").path)
    assert owners(bundle) == [("graph 0", [0, 1, 2, 3]), ("graph 7", [3]), ("code 0", [0, 1, 2, 3])]


def test_compiles_in_another_order_are_told_apart(tmp_path):
    f, g = compiled("0/0", "f"), compiled("1/0", "g")
    one = rank_bundle(tmp_path, 0, [graph(0), graph(0, 1)], compiles=[f, g])
    two = rank_bundle(tmp_path, 1, [graph(1, 1), graph(1)], compiles=[g, f])
    bundle = structdump.load(structdump.merge([one, two], tmp_path / "job.json.zst").path)
    for rank, names in ((0, ["graph 0", "graph 1"]), (1, ["graph 1", "graph 0"])):
        view = of_rank(bundle, rank)
        assert [a.name for a in view.artifacts] == names
        assert [c.function.name for c in view.compiles] == (["f", "g"] if rank == 0 else ["g", "f"])


def test_each_rank_comes_out_as_it_went_in(tmp_path):
    sources = [BUNDLES / f"{n}.json.zst" for n in ("train_low", "conv_low", "failing_low", "quickstart_low")]
    merged = structdump.load(structdump.merge(sources, tmp_path / "all.json.zst").path)
    for rank, path in enumerate(sources):
        original, view = structdump.load(path), of_rank(merged, rank)
        assert [(a.kind, a.name, a.compile_id) for a in view.artifacts] == [
            (a.kind, a.name, a.compile_id) for a in original.artifacts
        ]
        exact = [pair for pair in zip(view.artifacts, original.artifacts, strict=True) if not pair[0].varies]
        assert all(a.kind in ("metrics", "cache") for a in view.artifacts if a.varies)
        for mine, its in exact:
            hidden = {"seq", "ranks", "varies"}
            assert mine.model_dump(exclude=hidden) == its.model_dump(exclude=hidden)
            assert mine.text == its.text
        assert [c.model_dump(exclude={"ranks", "seconds_by_rank"}) for c in view.compiles] == [
            c.model_dump(exclude={"ranks", "seconds_by_rank"}) for c in original.compiles
        ]
        assert view.environment == original.environment
        assert view.run.model_copy(update={"rank": None}) == original.run
        assert view.completeness.verdict == original.completeness.verdict


# --- ranks ---


def test_ranks_come_from_the_run_else_from_the_order(tmp_path):
    paths = [rank_bundle(tmp_path, r) for r in (1, None, 1, 5)]
    bundle = structdump.load(structdump.merge(paths, tmp_path / "job.json.zst").path)
    assert [(r.rank, r.run.rank) for r in bundle.runs] == [(0, None), (1, 1), (2, 1), (5, 5)]
    assert bundle.runs[0].notes == ["it does not say its rank; 0 is by order"]
    assert bundle.runs[2].notes == ["it is another run of rank 1; 2 tells it apart"]
    assert all(a.ranks == [0, 1, 2, 5] for a in bundle.artifacts if a.kind == "metrics")


def test_more_ranks_than_anyone_wants_listed(tmp_path):
    paths = [rank_bundle(tmp_path, r, [graph(r)]) for r in range(3)]
    copies = [*paths * 22, rank_bundle(tmp_path, 90, [graph(90), graph(90, 1)])]
    bundle = structdump.load(structdump.merge(copies, tmp_path / "job.json.zst").path)
    assert len(bundle.runs) == 67
    assert owners(bundle) == [("graph 0", None), ("graph 1", [90])]
    assert [len(of_rank(bundle, r).artifacts) for r in (0, 65, 90)] == [1, 1, 2]


def test_a_merged_bundle_counts_as_its_ranks(tmp_path, job):
    more = rank_bundle(tmp_path, 8, [graph(8), metrics(8)])
    bundle = structdump.load(structdump.merge([job, more], tmp_path / "more.json.zst").path)
    assert [r.rank for r in bundle.runs] == list(range(9))
    assert [len(a.ranks) for a in bundle.artifacts] == [9, 8, 8, 9]
    assert of_rank(bundle, 7).run.pid == 77


def test_a_killed_rank_is_said(tmp_path):
    paths = [rank_bundle(tmp_path, 0), rank_bundle(tmp_path, 1, end=False)]
    bundle = structdump.load(structdump.merge(paths, tmp_path / "job.json.zst").path)
    assert bundle.complete is False
    assert [r.complete for r in bundle.runs] == [True, False]
    assert bundle.completeness.verdict == "partial"
    assert of_rank(bundle, 0).complete is True


def test_opened_bundles_and_bytes_are_sources_too(tmp_path):
    one, two, three = (rank_bundle(tmp_path, r) for r in range(3))
    sources = [structdump.load(one), two.read_bytes(), str(three)]
    bundle = structdump.load(structdump.merge(sources, tmp_path / "job.json.zst").path)
    assert [r.rank for r in bundle.runs] == [0, 1, 2]


# --- mistakes ---


def test_a_damaged_source_raises_or_is_left_out_whole(tmp_path):
    good, bad = rank_bundle(tmp_path, 0), rank_bundle(tmp_path, 1, [graph(1, n) for n in range(5)])
    data = bytearray(bad.read_bytes())
    data[-60] ^= 0xFF  # in the frame of texts: found only when they are read
    bad.write_bytes(data)
    target = tmp_path / "job.json.zst"
    with pytest.raises(CorruptError):
        structdump.merge([good, bad], target)
    assert not target.exists()
    told = {}
    structdump.merge([good, bad], target, on_error=told.__setitem__)
    assert list(told) == [str(bad)]
    bundle = structdump.load(target)
    assert [r.rank for r in bundle.runs] == [0]
    assert len(bundle.artifacts) == 4


def test_nothing_to_merge(tmp_path):
    with pytest.raises(UsageError, match="no bundle"):
        structdump.merge([], tmp_path / "job.json.zst")
    with pytest.raises(NotABundleError):
        structdump.merge([tmp_path / "none.json.zst"], tmp_path / "job.json.zst")
    assert list(tmp_path.iterdir()) == []


def test_the_output_among_the_sources_is_passed_over(tmp_path, job):
    paths = [rank_bundle(tmp_path, r) for r in range(2)]
    done = structdump.merge([job, *paths], job, overwrite=True)
    assert done.path == job
    assert [r.rank for r in structdump.load(job).runs] == [0, 1]


def test_an_existing_output_stays(tmp_path, job):
    before = job.read_bytes()
    assert structdump.merge([write_small(tmp_path)], job).path.name == "job-1.json.zst"
    assert job.read_bytes() == before


def test_the_same_sources_give_the_same_bytes(tmp_path):
    paths = [rank_bundle(tmp_path, r) for r in range(3)]
    made = [structdump.merge(paths, tmp_path / f"{n}.json.zst").path.read_bytes() for n in "ab"]
    assert made[0] == made[1]


# --- commands ---


def test_the_command(tmp_path, capsys):
    paths = [str(rank_bundle(tmp_path, r)) for r in range(2)]
    target = tmp_path / "job.json.zst"
    assert main(["merge", *paths, "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    cut = tmp_path / "cut.json.zst"
    cut.write_bytes(Path(paths[0]).read_bytes()[:-10])
    assert main(["merge", *paths, str(cut), "-o", str(target), "--force", "--json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert list(told["left_out"]) == [str(cut)]
    with pytest.raises(TruncatedError):
        structdump.load(cut)
    assert main(["merge", *paths, "-o", str(tmp_path / "no" / "dir.json.zst")]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["show"], ["show", "--rank", "3"], ["show", "--json"], ["show", "--kernels"], ["list"],
        ["list", "--json"], ["cat", "graph 0"], ["verify"], ["extract", "-o", "{out}/tree"],
        ["html", "-o", "{out}/page.html"], ["repro", "--rank", "2"],
    ],
)  # fmt: skip
def test_every_command_reads_it(job, tmp_path, capsys, arguments):
    command, *options = (a.format(out=tmp_path) for a in arguments)
    first, rest = ([options[0]], options[1:]) if command == "cat" else ([], options)
    assert main([command, str(job), *first, *rest]) == 0
    assert capsys.readouterr().out


def test_show_says_whether_the_ranks_agree(tmp_path, job, capsys):
    main(["show", str(job)])
    out = capsys.readouterr().out
    assert "8 ranks: 0-7" in out
    assert "the same compiles, graphs and kernels in all" in out
    paths = [rank_bundle(tmp_path, r, [graph(r)]) for r in range(3)]
    paths.append(rank_bundle(tmp_path, 5, [graph(5, op="tanh")]))
    odd = structdump.merge(paths, tmp_path / "odd.json.zst").path
    main(["show", str(odd)])
    out = capsys.readouterr().out
    assert "4 ranks of 8: 0-2, 5" in out
    assert "not all list the same: 0-2; 5" in out
    assert "no bundle of rank 3-4, 6-7" in out
    main(["list", str(odd)])
    assert [line.split()[5] for line in capsys.readouterr().out.splitlines()[1:]] == ["0-2", "5"]


def test_one_rank_of_it(job, capsys, tmp_path):
    assert main(["show", str(job), "--rank", "3", "--json"]) == 0
    head = json.loads(capsys.readouterr().out)
    assert head["run"]["rank"] == 3
    assert head["environment"]["variables"]["LOCAL_RANK"] == "3"
    assert head["compiles"][0]["seconds"] == 4.0
    assert main(["show", str(job), "--rank", "8"]) == 2
    assert "there are 0-7" in capsys.readouterr().err
    assert main(["show", str(rank_bundle(tmp_path, 0)), "--rank", "4"]) == 2
    assert main(["diff", str(job), str(rank_bundle(tmp_path, 0)), "--ignore", "env"]) == 0


# --- the parts ---


@given(st.lists(st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=8), max_size=6))
def test_a_lane_keeps_every_order(sequences):
    lane, keys = Lane(), {}
    for owner, sequence in enumerate(sequences):
        items = lane.add(owner, sequence)
        for item, key in zip(items, sequence, strict=True):
            assert keys.setdefault(item, key) == key
    assert sorted(lane.order) == list(range(len(lane)))
    for owner, sequence in enumerate(sequences):
        mine = [item for item in lane.order if owner in lane.owners()[item]]
        assert [keys[item] for item in mine] == sequence


JSON = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
)


@given(st.dictionaries(st.text(max_size=2), JSON), st.dictionaries(st.text(max_size=2), JSON))
def test_a_patch_makes_one_the_other(base, other):
    assert apply_patch(base, make_patch(base, other)) == other


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("x.to('cuda:0')", "x.to('cuda:1')", True),
        ("device(type='cuda', index=0)", "device(type='cuda', index=1)", True),
        ("select(x, index=0)", "select(x, index=1)", False),
        ("stream0, cuda:0", "stream1, cuda:1", True),
        ("'f32[8, 0]cuda:0'", "'f32[8, 1]cuda:1'", False),
        ("cuda:1, cuda:0", "cuda:1, cuda:1", False),
        ("<path-1>/a.py", "<path-2>/a.py", True),
        ("<path-1>/a.py", "<user-1>/a.py", False),
        ("all_reduce(x, 'sum', '0')", "all_reduce(x, 'max', '0')", False),
    ],
)
def test_what_tells_ranks_apart(a, b, same):
    assert (canonical(a, "cuda:0") == canonical(b, "cuda:1")) is same


def test_eight_devices_cost_less_than_a_third_more_than_one(tmp_path):
    paths = [
        rank_bundle(tmp_path, r, [*(graph(r, n) for n in range(60)), code(r), metrics(r)]) for r in range(8)
    ]
    done = structdump.merge(paths, tmp_path / "job.json.zst")
    assert done.bytes < 1.3 * max(p.stat().st_size for p in paths)
