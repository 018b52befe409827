"""Whole runs in which nearly everything is private: nothing of it is in the file, its name, or on stderr."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import structdump
from structdump.bundle.codec import stream_all
from structdump.bundle.reader import verify

OWN = str(Path(structdump.__file__).parents[1])
WORKLOADS = Path(__file__).parents[1] / "workloads"

PROGRAM = """
import os, torch
import torch._inductor.config, torch._dynamo.config
torch._inductor.config.profile_bandwidth_regex = "/home/canary01user/canary02config"
torch._dynamo.config.debug_dir_root = os.environ["HOME"] + "/canary03config"

@torch.compile(backend="aot_eager")
def f(x):
    # canary04mail@example.com wrote this on canary05host.canary06domain.example.com, 10.17.34.51
    y = x.sin()  # token hf_canary07aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, see /home/canary01user/canary08notes.d/x
    return y + 1

def backend(gm, inputs):
    raise ValueError("login canary09@example.com with password='canary10secret' on "
        "https://canary11:canary12pass@canary13host.canary06domain.org/?token=canary14token " + os.getcwd())

x = torch.randn(3, requires_grad=True)
f(x).sum().backward()
try:
    torch.compile(lambda x: x.cos(), backend=backend)(x)
except Exception as error:
    assert "canary10secret" in str(error)
"""
KEYS = {
    "HOME": "/home/canary01user",
    "USER": "canary01user",
    "LOGNAME": "canary01user",
    "USERNAME": "canary01user",
    "HOSTNAME": "canary05host",
    "TORCH_CANARY_TOKEN": "canary15",
    "HF_TOKEN": "hf_canary16",
    "WANDB_API_KEY": "canary17",
    "AWS_SECRET_ACCESS_KEY": "canary18",
    # torch's profile, which it keeps by this id, names the program's paths in a form of its own
    "TORCH_COMPILE_JOB_ID": "canary20@example.com",
    "TORCHINDUCTOR_TRITON_TMP": "/home/canary01user/canary21/tmp",
    "SLURM_JOB_NODELIST": "canary22node[1-3]",
    "VLLM_API_KEY": "canary23",
    "TRITON_CACHE_DIR": "/data/canary24",
    "NCCL_SOCKET_IFNAME": "eth0",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/scratch/canary25/nccl",
    "MASTER_ADDR": "canary26.cluster.example.com",
}
ARGUMENTS = [
    "--api-key", "canary27", "--hub-token=canary28", "/home/canary01user/canary29/data.json",
    "Authorization: Bearer canary30aaaaaaaaaaaaaaaaaaa", "WANDB_API_KEY=canary31", "canary32@example.com",
    "https://canary33:canary34@example.com/x.git", "--password", "canary35", "gs://canary36bucket@x:y/z",
]  # fmt: skip


def everything(path: Path) -> str:
    with path.open("rb") as file:
        return b"".join(stream_all(file)).decode("utf-8", "replace")


def canaries(text: str) -> set[str]:
    return set(re.findall(r"(?i)canary\d\d\w*|42424240\d", text))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["low", "full"])
def test_no_canary_of_a_whole_run_gets_out(run, tmp_path, level):
    folder = tmp_path / "canary37user" / "canary38project"
    folder.mkdir(parents=True)
    program = folder / "canary01user-run.py"
    program.write_text(PROGRAM)
    output = folder / "bundles"
    output.mkdir()
    keys = {**KEYS, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torchinductor_canary19")}
    keys["PYTHONPATH"] = f"/home/canary01user/canary39:{OWN}"
    done = run(
        program, *ARGUMENTS, cwd=folder, STRUCTDUMP_LEVEL=level, STRUCTDUMP_OUTPUT=str(output),
        STRUCTDUMP_FUNCTIONS="!canary40*", STRUCTDUMP_REDACT_PATTERNS=r"canary40\W", **keys,
    )  # fmt: skip
    assert done.code == 0, done.err
    (bundle,) = output.iterdir()
    assert canaries(bundle.name) == set()
    assert len(done.said) == 1
    assert canaries(done.said[0]) == set()
    assert canaries(everything(bundle)) == set()
    assert verify(bundle) == []
    loaded = structdump.load(bundle)
    assert loaded.hook_errors == []
    assert sum(loaded.redactions.values()) > 30
    assert {c.status for c in loaded.compiles} == {"ok", "failed"}
    assert any(
        "site-packages/torch/_dynamo/" in (c.error.traceback or "") for c in loaded.compiles if c.error
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_nothing_of_the_user_is_in_a_shapes_only_bundle(run, tmp_path, backend):
    folder = tmp_path / "canary46folder"
    folder.mkdir()
    done = run(
        WORKLOADS / "secretive.py", "canary47argument", cwd=folder, STRUCTDUMP_LEVEL="full",
        STRUCTDUMP_PRIVACY="shapes", STRUCTDUMP_REDACT="0", WORKLOAD_BACKEND=backend,
        STRUCTDUMP_OUTPUT="{program}_{level}.json.zst", STRUCTDUMP_PASSES="!canary48pass", **KEYS,
        PYTHONPATH=OWN,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert len(done.said) == 1
    assert canaries(done.said[0]) == set()
    (bundle,) = folder.glob("*.json.zst")
    assert bundle.name == "program_full.json.zst"
    assert canaries(everything(bundle)) == set()
    assert verify(bundle) == []
    loaded = structdump.load(bundle)
    assert loaded.hook_errors == []
    assert {a.omitted.reason for a in loaded.artifacts if a.omitted} == {"privacy"}
    # What a maintainer needs is there: topology, ops, shapes, breaks, recompiles, failures.
    assert {c.status for c in loaded.compiles} == {"ok", "failed"}
    assert any(c.graph_breaks for c in loaded.compiles)
    assert any(c.recompile for c in loaded.compiles)
    assert all(g.text and g.nodes for g in loaded.graphs())
    joint = loaded.graphs(stage="joint")[0]
    assert joint.ops["aten.mul.Tensor"] > 1
    assert "torch.ops.aten.mul.Tensor(" in joint.text
    if backend == "inductor":
        assert any(k.kernel.backend == "cpp" and k.kernel.ops for k in loaded.kernels())
        assert {k.source for k in loaded.kernels()} == {None}
