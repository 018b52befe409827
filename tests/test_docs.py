"""What the documentation says, done: the README's examples, its tables, and the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import clean_environment

import structdump
from structdump import DumpConfig
from structdump.levels import LEVELS, TABLE

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```(sh|python)\n(.*?)^ *```", README, re.MULTILINE | re.DOTALL)
CELLS = {"text": "text", "index": "index", "drop": "–", "winner": "winner"}


def level_table() -> str:
    """The table of levels.py as the README shows it: rows of one kind of answer joined."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for row in TABLE:
        cells = tuple(CELLS[getattr(row, level)] for level in LEVELS)
        names = rows.setdefault(cells, [])
        if row.what not in names:
            names.append(row.what)
    lines = ["| what | low | medium | full |", "|---|---|---|---|"]
    lines += [f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in rows.items()]
    return "\n".join(lines)


def settings_table() -> str:
    """The settings of DumpConfig, as the README shows them."""
    lines = ["| variable | option of `run`, `pack` | meaning |", "|---|---|---|"]
    for name, field in DumpConfig.model_fields.items():
        option = {"redact": "--no-redact", "output": "-o"}.get(name, f"--{name.replace('_', '-')}")
        meaning = (field.description or "").replace("|", "\\|")
        lines.append(f"| `STRUCTDUMP_{name.upper()}` | `{option}` | {meaning} |")
    return "\n".join(lines)


@pytest.mark.parametrize("table", [level_table, settings_table])
def test_the_tables_are_those_of_the_code(table):
    assert table() in README, f"put this into README.md:\n{table()}"


#: `diff` exits with 1 when its two sides differ, as `diff` does.
DIFFERENT_IS_FINE = 'structdump() { command structdump "$@" || [ "$1 $?" = "diff 1" ]; }\n'


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_examples_run(tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = clean_environment(tmp_path / "caches")
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    environment["PYTHONPATH"] = str(tmp_path / "examples")
    for language, code in BLOCKS:
        if "pip install" in code:
            continue  # what the continuous integration runs
        command = (
            ["sh", "-e", "-c", DIFFERENT_IS_FINE + code] if language == "sh" else [sys.executable, "-c", code]
        )
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    assert {p.name for p in tmp_path.glob("*.json.zst")} >= {"run.json.zst", "full.json.zst", "step.json.zst"}


def modules() -> list[str]:
    found = [m.name for m in pkgutil.walk_packages(structdump.__path__, "structdump.")]
    return [name for name in found if "hooks" not in name and not name.endswith("__main__")]


@pytest.mark.parametrize("name", modules())
def test_the_examples_in_docstrings(name, monkeypatch):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    globs = {"structdump": structdump, "os": os, **vars(module)}
    for example in finder.find(module, name, globs=globs):
        if any("run.json.zst" in e.source for e in example.examples):
            continue  # needs a bundle; the README's own are run above
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(
            example
        )
        assert result.failed == 0, example.name
