"""Files made to exhaust whoever opens them: each ends in a typed error, in little memory and time."""

from __future__ import annotations

import gzip
import io
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from sample_bundles import write_small

from structdump.bundle import codec
from structdump.bundle.journal import Journal

GIB = 1 << 30
SIZE = struct.pack("<Q", GIB)

OPEN = """
import resource, sys, time
from structdump.bundle import reader
from structdump.errors import BundleError
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
def rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
def texts(path):
    return dict(reader.load(path).texts)
function = {"load": reader.load, "head": reader.head, "texts": texts}[sys.argv[2]]
before, start = rss(), time.process_time()
try:
    function(sys.argv[1])
    outcome = "opened"
except BundleError as e:
    outcome = type(e).__name__
print(outcome, rss() - before, time.process_time() - start)
"""


def opened(path: Path, how: str = "load") -> tuple[str, int, float]:
    """Open a file in a process of its own; return the outcome, MiB of extra memory, CPU seconds."""
    out = subprocess.run([sys.executable, "-c", OPEN, path, how], capture_output=True, text=True, check=True)
    outcome, memory, seconds = out.stdout.split()
    return outcome, int(memory), float(seconds)


def frame(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


def zeros(size: int, sized: bool) -> bytes:
    """Return a zstd frame of `size` zeros, in 4 bytes for each 128 KiB, without ever holding them."""
    blocks = size >> 17
    if sized:
        head = codec.ZSTD_MAGIC + b"\xc0" + b"\x58" + struct.pack("<Q", size)
    else:
        head = codec.ZSTD_MAGIC + b"\x00" + b"\x58"
    rle = (1 << 17) << 3 | 1 << 1
    return head + b"".join((rle | (n == blocks - 1)).to_bytes(3, "little") + b"\0" for n in range(blocks))


def head_frames(directory: Path) -> bytes:
    """Return the start of a sound bundle, up to where its texts begin."""
    data = write_small(directory).read_bytes()
    return data[: list(codec.frames(data))[1].end]


def gzip_of_spaces(size: int) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = compressor.compress(b"{") + compressor.flush(zlib.Z_FULL_FLUSH)
    block = compressor.compress(b" " * (1 << 20)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return start + block * (size >> 20)  # a full flush makes blocks that don't refer to each other


def zip_of_spaces(size: int, claimed: int) -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("b.json", "w") as member,
    ):
        member.write(b"{")
        for _ in range(size >> 20):
            member.write(b" " * (1 << 20))
    data = bytearray(out.getvalue())
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", claimed)
    return bytes(data)


BOMBS: dict[str, Callable[[], bytes]] = {
    "one frame that says its size": lambda: zeros(GIB, sized=True),
    "one frame that does not": lambda: zeros(GIB, sized=False),
    "one frame that lies about its size": lambda: zeros(GIB, sized=True).replace(SIZE, b"\0" * 8),
    "many frames of 1 MiB": lambda: frame(b"\0" * (1 << 20)) * 1024,
    "many frames of 128 MiB": lambda: zeros(1 << 27, sized=True) * 300,
    "gzip": lambda: gzip_of_spaces(4 * GIB),
    "many gzip members": lambda: gzip.compress(b"{" + b" " * (1 << 20)) * 3000,
    "zip": lambda: zip_of_spaces(GIB, GIB),
    "zip that lies about its size": lambda: zip_of_spaces(GIB, 1000),
    "zip of a zstd bomb": lambda: _zipped(zeros(GIB, sized=False)),
    "zip of zips": lambda: _zipped(_zipped(_zipped(b"{}"))),
    "frames beyond counting": lambda: frame(b"") * 1_000_000,
    "empty lists": lambda: frame(b"[" + b"[]," * 60_000_000 + b"[]]"),
    "deep lists": lambda: frame(b'{"format":"structdump","x":' + b"[" * 10**6),
    "deep objects": lambda: b'{"a":' * 10**6 + b"1" + b"}" * 10**6,
    "huge integer": lambda: b'{"format":"structdump","version":"1.0","x":' + b"9" * 10**7 + b"}",
    "10^7 artifacts": lambda: _document(b"{}," * (10**7 - 1) + b"{}"),
    "5 * 10^6 artifacts with names": lambda: frame(
        _document(b",".join([b'{"seq":1,"kind":"graph","name":"n"}'] * 5 * 10**6))
    ),
    "10^6 times the same key": lambda: b'{"format":"structdump",' + b'"a":1,' * 10**6 + b'"a":1}',
    "10^6 keys": lambda: b'{"format":"nothing",' + b",".join(b'"%d":1' % n for n in range(10**6)) + b"}",
    "backslashes": lambda: b'{"a":"' + b"\\" * (64 << 20),
    "quotes": lambda: frame(b'{"a":' + b'"' * (64 << 20)),
    "a window of 2 GiB": lambda: codec.ZSTD_MAGIC + b"\x00\xa8" + b"\x01\0\0",
    "blocks of nothing": lambda: codec.ZSTD_MAGIC + b"\x00\x58" + b"\0\0\0" * 2_000_000 + b"\1\0\0",
}  # fmt: skip


def _document(artifacts: bytes) -> bytes:
    return (
        b'{"format":"structdump","version":"1.0","artifacts":[' + artifacts + b'],"texts":{},"complete":true}'
    )


def _zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("b.json.zst", data)
    return out.getvalue()


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[name]())
    for how in ("load", "head")[: 1 + (len(path.read_bytes()) < 1 << 20)]:
        outcome, memory, seconds = opened(path, how)
        assert outcome in ("LimitError", "CorruptError", "NotABundleError", "TruncatedError")
        assert memory < 900, how
        assert seconds < 20, how


def test_the_classic_bomb_takes_no_memory_at_all(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(zeros(GIB, sized=True))
    assert path.stat().st_size < 33_000
    outcome, memory, _ = opened(path)
    assert outcome == "LimitError"
    assert memory < 30
    path.write_bytes(zeros(GIB, sized=False))
    outcome, memory, _ = opened(path)
    assert outcome == "LimitError"
    assert memory < 300


@pytest.mark.parametrize(
    ("content", "count"),
    [(b"\0" * (1 << 20), 1000), (b'"' + b"0" * 32 + b'":"' + b"x" * (1 << 20) + b'"', 1000), (b",", 150_000)],
    ids=["zeros", "the same text", "commas"],
)
def test_frames_of_texts_that_are_bombs(tmp_path: Path, content: bytes, count: int) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(head_frames(tmp_path) + frame(content) * count + frame(b'},"complete":true}'))
    outcome, memory, seconds = opened(path, "texts")
    assert outcome in ("CorruptError", "LimitError", "opened")
    assert memory < 300
    assert seconds < 20


def test_a_frame_of_one_huge_text(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(head_frames(tmp_path) + zeros(GIB, sized=True) + frame(b'},"complete":true}'))
    outcome, memory, _ = opened(path, "texts")
    assert outcome == "LimitError"
    assert memory < 30


def _journal(path: Path, lines: bytes, times: int) -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    with path.open("wb") as file:
        file.write(compressor.compress(b'{"t":"head"}\n'))
        for _ in range(times):
            file.write(compressor.compress(lines))
        file.write(compressor.flush())


TEXT = b'{"t":"text","digest":"%032x","text":"x"}\n'
ARTIFACT = b'{"t":"artifact","artifact":{"seq":0,"kind":"graph","name":"n"}}\n'


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        (b"x" * (1 << 20), 1000),
        (b"\n" * (1 << 20), 100),
        (ARTIFACT * 10_000, 1000),
        (b"".join(TEXT % n for n in range(400_000)), 1),
        (b'{"t":"text","digest":"' + b"0" * (1 << 20), 1000),
        (b'{"t":"state","x":' + b"[" * (1 << 20), 10),
        (b'{"t":"compile","compile":{"id":"%d"}}\n' * 10_000, 100),
    ],
    ids=[
        "no line end",
        "empty lines",
        "10^7 artifacts",
        "400,000 texts",
        "long text",
        "deep",
        "the same compile",
    ],
)
def test_journals_that_are_bombs(tmp_path: Path, lines: bytes, times: int) -> None:
    path = tmp_path / "bomb.journal"
    _journal(path, lines, times)
    outcome, memory, seconds = opened(path)
    assert outcome in ("LimitError", "opened")
    assert memory < 900
    assert seconds < 60


def test_a_huge_sparse_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    for start in (b"", codec.ZSTD_MAGIC + b"\x00\x58", b"{", b"\x1f\x8b\x08\0", b"PK\x03\x04"):
        with path.open("wb") as file:
            file.write(start)
            file.truncate(10 << 30)
        outcome, memory, seconds = opened(path)
        assert outcome != "opened"
        assert memory < 900
        assert seconds < 20


def test_a_sound_journal_is_no_bomb_however_well_it_compresses(tmp_path: Path) -> None:
    text = "x = torch.ops.aten.mm(a, b)\n" * 5_000
    journal = Journal.create(tmp_path / "a.journal")
    for seq in range(2000):
        own = f"{seq}\n{text}"
        journal.write({"t": "text", "digest": codec.digest(own), "text": own})
        journal.write(
            {
                "t": "artifact",
                "artifact": {"seq": seq, "kind": "graph", "name": "n", "digest": codec.digest(own)},
            }
        )
    journal.write({"t": "end"})
    journal.close()
    outcome, _, _ = opened(journal.path, "texts")
    assert outcome == "opened"
