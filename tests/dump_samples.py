"""Real dumps and output codes that tests read, kept as archives under tests/data/depyf.

output_code: what Inductor wrote on CPU with torch 2.13. llama_h200: depyf's dump of a max-autotune
compile on an H200 with torch 2.11. vllm_cold, vllm_warm: depyf's dumps of a toy model under vLLM.
"""

from __future__ import annotations

import tarfile
from functools import lru_cache
from pathlib import Path

DATA = Path(__file__).parent / "data" / "depyf"


@lru_cache
def members(archive: str) -> dict[str, str]:
    """Return the texts of one archive by name."""
    with tarfile.open(DATA / f"{archive}.tar.xz") as tar:
        files = [(member, tar.extractfile(member)) for member in tar.getmembers()]
        return {member.name: file.read().decode() for member, file in files if file is not None}


def unpack(archive: str, target: Path) -> Path:
    """Write the files of one archive into `target`, which is made."""
    target.mkdir(parents=True)
    for name, text in members(archive).items():
        (target / name).write_text(text)
    return target
