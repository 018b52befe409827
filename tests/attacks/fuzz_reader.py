"""A coverage-guided fuzz of the reader, with atheris (which the tests don't need).

    pip install atheris
    python tests/attacks/fuzz_reader.py corpus/ -max_total_time=600 -max_len=20000

Writes its seed corpus into the first directory named, if that is empty. Whatever is no BundleError
stops it, with the input in a `crash-…` file. The first byte of an input says how the rest reaches the
reader: as it is; as JSON in one zstd frame; as a journal's lines; as the content of a frame of texts;
as gzip; as the one member of a zip.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
import tempfile
import zipfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent))
with atheris.instrument_imports(include=["structdump"]):
    from sample_bundles import exercise, write_journal, write_small

    from structdump.bundle import codec
    from structdump.bundle.layout import OPENING, closing
    from structdump.bundle.limits import DEFAULT, Limits, Meter
    from structdump.bundle.reader import load
    from structdump.errors import BundleError

LIMITS = Limits(
    decompressed=1 << 24, document=1 << 22, text=1 << 22, head=1 << 22, artifacts=1000, nodes=100_000
)
HEAD = (
    b'{"format":"structdump","version":"1.0","artifacts":[{"seq":0,"kind":"graph","name":"g","digest":"%b"}],'
)
DIGEST = codec.digest("abc").encode()


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("b", data)
    return out.getvalue()


WAYS = (
    lambda data: data,
    codec.compress,
    lambda data: codec.compress(b'{"t":"head"}\n' + data),
    lambda data: b"".join(map(codec.compress, (HEAD % DIGEST, OPENING, data, closing(complete=True)))),
    gzip.compress,
    zipped,
)


def one(data: bytes) -> None:
    if not data:
        return
    with contextlib.suppress(BundleError):
        bundle = load(WAYS[data[0] % len(WAYS)](data[1:]), limits=LIMITS)
        exercise(bundle)


def seeds(directory: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        packed = write_small(Path(folder)).read_bytes()
        spool = write_journal(Path(folder) / "a.journal").read_bytes()
    meter = Meter(DEFAULT, 1 << 30)
    frames = [codec.inflate(packed, f, meter) for f in codec.frames(packed)]
    text = b"".join(frames)
    lines = b"".join(codec.stream(spool))
    contents = [
        *((0, packed), (0, spool), (0, text), (0, gzip.compress(text)), (0, zipped(packed))),
        *(
            (1, text),
            (2, lines),
            (3, frames[2]),
            (3, b'"%b":"abc"' % DIGEST),
            (4, text),
            (5, packed),
            (5, text),
        ),
    ]
    for number, (way, content) in enumerate(contents):
        (directory / f"seed-{number}").write_bytes(bytes([way]) + content)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if not argument.startswith("-"):
            corpus = Path(argument)
            corpus.mkdir(exist_ok=True)
            if not any(corpus.iterdir()):
                seeds(corpus)
            break
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
