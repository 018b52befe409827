from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sample_bundles import records, write_journal

from structdump.bundle import journal as journals
from structdump.bundle.codec import digest
from structdump.bundle.journal import Journal, in_use, is_journal, read_journal
from structdump.bundle.limits import Limits
from structdump.errors import LimitError, NotABundleError


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "a.journal")
    reader = read_journal(path)
    assert list(reader) == [*records(), {"t": "end"}]
    assert (reader.complete, reader.cut, reader.damage) == (True, False, None)
    assert list(reader) == [*records(), {"t": "end"}]
    assert path.stat().st_mode & 0o777 == 0o600


def test_every_record_is_readable_at_once(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "a.journal")
    for n, record in enumerate(records()):
        journal.write(record)
        reader = read_journal(journal.path)
        assert len(list(reader)) == n + 1
        assert not reader.complete
        assert not reader.cut
    journal.discard()
    assert not journal.path.exists()
    journal.discard()


def test_it_is_one_frame_that_the_zstd_command_reads(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "a.journal")
    if shutil.which("zstd") is None:
        pytest.skip("the zstd command is not installed")
    out = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
    assert out.count(b"\n") == len(records()) + 1
    listing = subprocess.run(["zstd", "-lv", path], capture_output=True, check=True, text=True).stdout
    assert "# Zstandard Frames: 1" in listing


def test_any_cut_leaves_the_records_before_it(tmp_path: Path) -> None:
    data = write_journal(tmp_path / "a.journal").read_bytes()
    whole = list(read_journal(tmp_path / "a.journal"))
    cut = tmp_path / "cut.journal"
    counts = []
    for size in range(4, len(data)):
        cut.write_bytes(data[:size])
        if not counts and not is_journal(data[:size]):
            continue  # not even the first record is whole
        reader = read_journal(cut)
        found = list(reader)
        assert found == whole[: len(found)]
        assert reader.complete == (len(found) == len(whole))
        counts.append(len(found))
    assert counts == sorted(counts)
    assert set(counts) == set(range(1, len(whole) + 1))


def test_damage_ends_it_and_is_told(tmp_path: Path) -> None:
    data = bytearray(write_journal(tmp_path / "a.journal").read_bytes())
    whole = list(read_journal(tmp_path / "a.journal"))
    told = 0
    for at in range(12, len(data), 3):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        (tmp_path / "b.journal").write_bytes(damaged)
        try:
            reader = read_journal(tmp_path / "b.journal")
        except NotABundleError:
            told += 1
            continue
        found = list(reader)
        told += bool(reader.cut)
        assert len(found) <= len(whole) + 2
    assert told


def test_it_is_never_made_over_a_file_or_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.journal").write_text("precious")
    with pytest.raises(FileExistsError):
        Journal.create(tmp_path / "a.journal")
    (tmp_path / "link.journal").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="File exists"):
        Journal.create(tmp_path / "link.journal")
    assert not (tmp_path / "elsewhere").exists()
    assert (tmp_path / "a.journal").read_text() == "precious"


@pytest.mark.parametrize("content", [b"", b"abc", b"hello world", None])
def test_other_files_are_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "a.journal").write_bytes(content)
    with pytest.raises(NotABundleError):
        read_journal(tmp_path / "a.journal")


def test_a_record_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    text = "x" * 5_000_000
    path = write_journal(tmp_path / "a.journal", [{"t": "text", "digest": digest(text), "text": text}])
    with pytest.raises(LimitError):
        list(read_journal(path, Limits(text=1 << 20)))


def test_a_full_disk_raises_and_keeps_what_was_written(tmp_path: Path) -> None:
    """A limit on file size stands for the full disk: the kernel refuses the write in the same way."""
    script = """
import resource, signal, sys, pathlib, random
from structdump.bundle.codec import digest
from structdump.bundle.journal import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
journal, n = Journal.create(pathlib.Path(sys.argv[1])), 0
rng = random.Random(0)
while True:
    try:
        text = rng.randbytes(3000).hex()
        journal.write({"t": "text", "digest": digest(text), "text": text})
        n += 1
    except OSError as e:
        print(n, e.errno)
        break
try:
    journal.write({"t": "end"})
except OSError:
    print("still refused")
journal.close()
"""
    path = tmp_path / "a.journal"
    out = _python(script, path).split()
    assert out[1:] == [str(errno.EFBIG), "still", "refused"]
    reader = read_journal(path)
    assert len(list(reader)) == int(out[0]) > 5
    assert not reader.complete


def test_a_forked_child_leaves_the_parents_journal_alone(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "a.journal")
    journal.write({"t": "head"})
    pid = os.fork()
    if pid == 0:  # the child
        journal.abandon()
        try:
            journal.write({"t": "state"})
        except OSError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert in_use(journal.path)
    journal.write({"t": "end"})
    journal.close()
    assert [r["t"] for r in read_journal(journal.path)] == ["head", "end"]
    assert not in_use(journal.path)


def test_a_journal_is_in_use_as_long_as_its_process_lives(tmp_path: Path) -> None:
    child = _writer(tmp_path / "a.journal")
    _wait_for(tmp_path / "a.journal", 1)
    assert in_use(tmp_path / "a.journal")
    child.kill()
    child.wait()
    assert not in_use(tmp_path / "a.journal")


WRITER = """
import os, pathlib, random, sys
from structdump.bundle.codec import digest
from structdump.bundle.journal import Journal
journal = Journal.create(pathlib.Path(sys.argv[1]))
rng = random.Random(os.getpid())
journal.write({"t": "head"})
for n in range(10**9):
    line = rng.choice(["x = torch.ops.aten.mm(a, b)\\n", rng.randbytes(20).hex()])
    text = f"{n} " + line * rng.randrange(5000)
    journal.write({"t": "text", "digest": digest(text), "text": text})
    os.write(1, b"%d\\n" % n)
"""


@pytest.mark.parametrize("attempt", range(8))
def test_kill_9_loses_no_record_whose_write_returned(tmp_path: Path, attempt: int) -> None:
    path = tmp_path / "a.journal"
    acknowledged = tmp_path / "acknowledged"
    with acknowledged.open("wb") as out:
        child = _writer(path, out.fileno())
        _wait_for(path, 1)
        time.sleep(random.Random(attempt).random() * 0.4)
        child.send_signal(signal.SIGKILL)
        child.wait()
    *_, last = [b"-1", *acknowledged.read_bytes().splitlines()]
    reader = read_journal(path)
    found = [r for r in reader if r["t"] == "text"]
    assert len(found) > int(last)
    assert [r["text"].split(" ")[0] for r in found] == [str(n) for n in range(len(found))]
    assert all(digest(r["text"]) == r["digest"] for r in found)
    assert not reader.complete


def test_names_lie_beside_their_target() -> None:
    target = Path("out/run.json.zst")
    name = journals.beside(target)
    assert name.parent == target.parent
    assert name != journals.beside(target)
    assert name.name.endswith(journals.SUFFIX)
    assert len(journals.beside(Path("x" * 250)).name) < 255


def _writer(path: Path, out: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=out)


def _wait_for(path: Path, size: int) -> None:
    for _ in range(600):
        if path.exists() and path.stat().st_size >= size:
            return
        time.sleep(0.05)
    raise AssertionError("the child wrote nothing")


def _python(script: str, *args: object) -> str:
    command = [sys.executable, "-c", script, *map(str, args)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
