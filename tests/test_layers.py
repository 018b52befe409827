"""The rooms of the package: who may import whom, and what a reader may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from sample_bundles import write_small

import structdump

ROOT = Path(structdump.__file__).parent
FOUNDATION = {"errors", "levels", "config", "structdump"}
#: room -> the rooms that it may import from
MAY = {
    "bundle": FOUNDATION | {"bundle"},
    "select": FOUNDATION | {"bundle", "select"},
    "sources": FOUNDATION | {"bundle", "select", "sources", "activate"},
    "analyze": FOUNDATION | {"bundle", "analyze"},
    "report": FOUNDATION | {"bundle", "analyze", "report"},
    "cli": FOUNDATION | {"bundle", "select", "sources", "analyze", "report", "cli", "activate"},
}
FILES = sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_run_one_way(path):
    room = path.relative_to(ROOT).parts[0]
    ours = {name.split(".")[1] for name in imports(path) if name.startswith("structdump.")}
    rooms = {name for name in ours if (ROOT / name).exists() or (ROOT / f"{name}.py").exists()}
    if room in MAY:
        assert rooms <= MAY[room], f"{room} imports {rooms - MAY[room]}"
    foreign = {name.split(".")[0] for name in imports(path)}
    if path != ROOT / "bundle" / "codec.py":
        assert not foreign & {"orjson", "zstandard"}
    if "hooks" not in path.parts:
        assert not foreign & {"torch", "depyf", "triton"}


def test_the_check_of_rooms_can_fail():
    assert "report" not in MAY["sources"]
    assert "sources" not in MAY["report"]
    assert {MAY[p.relative_to(ROOT).parts[0]] is not None for p in FILES if p.parent != ROOT} == {True}


READ = """
import sys
for name in ("torch", "depyf", "triton", "pandas"):
    sys.modules[name] = None  # as if it were not installed
import structdump
bundle = structdump.load(sys.argv[1])
[a.text for a in bundle.artifacts]
bundle.kernels(), bundle.graphs(), bundle.configs(), bundle.passes()
from structdump.cli import main
for command in (["verify"], ["verify", "--json"]):
    assert main([command[0], sys.argv[1], *command[1:]]) in (0, 1), command
print(sorted(m for m in sys.modules if m.split(".")[0] in ("torch", "depyf") and sys.modules[m]))
"""


def test_reading_works_with_torch_and_depyf_absent(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", READ, str(write_small(tmp_path))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_importing_loads_nothing_of_weight():
    code = "import structdump, sys; print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("torch", "depyf", "pydantic", "orjson", "zstandard", "rich", "typer", "jinja2", "wrapt"):
        assert f"'{heavy}'" not in out


def test_public_names():
    assert structdump.__all__ == sorted(structdump.__all__, key=lambda n: (n[0].islower(), n))
    for name in structdump.__all__:
        assert getattr(structdump, name) is not None
        assert name in dir(structdump)
        if name != "__version__":
            assert getattr(structdump, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'lood'"):
        structdump.lood  # noqa: B018 # it is the test
