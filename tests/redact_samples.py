"""The real texts that redaction is tested on: graphs, kernels, guards and a log, of a user named alex."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

from structdump.bundle.redact import Redactor

HOME = "/home/alex"
HOSTS = ("gpu-07.cluster.example.com",)


@cache
def samples() -> dict[str, str]:
    path = Path(__file__).parent / "data" / "redact" / "samples.json.gz"
    return json.loads(gzip.decompress(path.read_bytes()))


def redactor(**settings) -> Redactor:
    """A redactor that knows nothing of the machine that the tests run on."""
    return Redactor(**{"home": HOME, "user": "alex", "hosts": HOSTS, "secrets": ()} | settings)
