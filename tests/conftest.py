"""Real programs, run in fresh processes, and the bundles they leave."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import structdump

WORKLOADS = Path(__file__).parent / "workloads"
Runner = Callable[..., "Run"]


class Run(NamedTuple):
    """One finished process."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> list[str]:
        """What structdump wrote on stderr."""
        return [line for line in self.err.splitlines() if line.startswith("structdump:")]


def clean_environment(caches: Path, **extra: str) -> dict[str, str]:
    """The environment for a child: none of the caller's settings, caches of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STRUCTDUMP_", "TORCH", "PYTHON"))}
    return {**kept, "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"), "OMP_NUM_THREADS": "1", **extra}


def python(*args: str | Path, caches: Path, cwd: Path, timeout: float = 600, **extra: str) -> Run:
    done = subprocess.run(
        [sys.executable, *map(str, args)],
        cwd=cwd,
        env=clean_environment(caches, **extra),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """Run Python on a file or with options, in `tmp_path`, with caches of its own."""

    def runner(*args: str | Path, cwd: Path | None = None, caches: Path | None = None, **extra: str) -> Run:
        return python(*args, caches=caches or tmp_path / "caches", cwd=cwd or tmp_path, **extra)

    return runner


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    """Write a program and return its path."""

    def write(source: str, name: str = "program.py") -> Path:
        path = tmp_path / name
        path.write_text(source, encoding="utf-8")
        return path

    return write


class Captured(NamedTuple):
    """A workload's process and its bundle."""

    run: Run
    bundle: structdump.Bundle
    path: Path
    caches: Path


def capture_workload(name: str, level: str, folder: Path, **extra: str) -> Captured:
    target = folder / f"{name}-{level}.json.zst"
    settings: Mapping[str, str] = {"STRUCTDUMP_LEVEL": level, "STRUCTDUMP_OUTPUT": str(target), **extra}
    done = python(WORKLOADS / f"{name}.py", caches=folder / "caches", cwd=folder, **settings)
    assert target.exists(), done.err
    return Captured(done, structdump.load(target), target, folder / "caches")


def captured_once(name: str, level: str, factory: pytest.TempPathFactory) -> Captured:
    """Capture a workload in one of the workers that run the tests; the others wait and take its files."""
    root = factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder = root / f"{name}_{level}"
    with (root / f"{name}_{level}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = folder / "told.json"
        if not told.exists():
            folder.mkdir(exist_ok=True)
            made = capture_workload(name, level, folder)
            told.write_text(json.dumps(made.run), encoding="utf-8")
            return made
        target = folder / f"{name}-{level}.json.zst"
        done = Run(*json.loads(told.read_text(encoding="utf-8")))
        return Captured(done, structdump.load(target), target, folder / "caches")


@pytest.fixture(scope="session")
def train_full(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """The training workload on cold caches, at full."""
    return captured_once("train", "full", tmp_path_factory)


@pytest.fixture(scope="session")
def train_low(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """The training workload on cold caches, at low."""
    return captured_once("train", "low", tmp_path_factory)


@pytest.fixture(scope="session")
def conv_medium(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """The convolution workload on cold caches, at medium."""
    return captured_once("conv", "medium", tmp_path_factory)


@pytest.fixture(scope="session")
def failing_low(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """The workload whose compile raises, at low."""
    return captured_once("failing", "low", tmp_path_factory)
