"""Processes that read bundles side by side.

Not `multiprocessing`: a fork copies threads' locks in unknown states, and a spawn runs the user's script
again, unless that guards against it. These run nothing but this package.
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

from structdump.bundle import codec

Request = dict[str, Any]
Reply = list[dict[str, Any]]
Answer = Callable[[Request], Reply]

_START = (
    "import sys; sys.path[:] = sys.argv[1:]\n"
    "from structdump.bundle.scan import answer; from structdump.bundle.workers import serve; serve(answer)"
)


def in_order(requests: Iterable[Request], count: int) -> Iterator[Reply]:
    """Yield the replies to requests, in order, from `count` processes; few are under way at a time.

    A request has `paths`, and its reply an entry for each. When a process dies, each of its paths is
    tried in a process of its own; one that kills that too gets an entry with an `error`.
    """
    pool = _Pool(count)
    try:
        waiting: deque[Future[Reply]] = deque()
        for request in requests:
            waiting.append(pool.submit(request))
            if len(waiting) > 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.close()


class _Pool:
    def __init__(self, count: int):
        self._threads = ThreadPoolExecutor(count, "structdump-scan")
        self._idle: list[subprocess.Popen[bytes]] = []
        self._all: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, request: Request) -> Future[Reply]:
        return self._threads.submit(self._ask, request)

    def close(self) -> None:
        self._closed = True
        for process in self._all:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._all:
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # what was not sent is not wanted any more
                    assert pipe is not None  # noqa: S101  # both are pipes
                    pipe.close()
            process.wait()

    def _ask(self, request: Request) -> Reply:
        reply = self._try(request)
        if reply is not None:
            return reply
        paths = request["paths"]
        if len(paths) > 1:
            return [entry for path in paths for entry in self._ask({**request, "paths": [path]})]
        return [{"path": paths[0], "error": ["BundleError", f"{paths[0]}: reading it ended the process"]}]

    def _try(self, request: Request) -> Reply | None:
        """Return the reply, or None if the process died."""
        with self._lock:
            process = self._idle.pop() if self._idle else None
        process = process or self._start()
        assert process.stdin is not None  # noqa: S101  # it is a pipe
        assert process.stdout is not None  # noqa: S101  # it is a pipe
        try:
            _send(process.stdin, request)
            reply: Reply | None = _receive(process.stdout)
        except OSError:
            reply = None
        if reply is None:
            process.kill()
            return None
        with self._lock:
            self._idle.append(process)
        return reply

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _START, *sys.path]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # our own code
        with self._lock:
            self._all.append(process)
            if self._closed:
                process.kill()
        return process


def serve(answer: Answer) -> None:
    """Answer the requests on stdin until it ends. What prints to stdout goes to stderr instead."""
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    gc.freeze()
    gc.disable()  # what one bundle is made of is freed as a whole
    while (request := _receive(sys.stdin.buffer)) is not None:
        _send(out, answer(request))
        gc.collect()


def _send(file: IO[bytes], value: Any) -> None:
    data = codec.dumps(value)
    file.write(len(data).to_bytes(8, "little") + data)
    file.flush()


def _receive(file: IO[bytes]) -> Any:
    length = int.from_bytes(file.read(8), "little")
    data = file.read(length)
    return codec.parse_record(data) if length and len(data) == length else None
