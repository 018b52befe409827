from __future__ import annotations

import contextlib
import enum
import io
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from structdump.bundle import codec
from structdump.bundle.limits import DEFAULT, Limits, Meter
from structdump.errors import BundleError, CorruptError, LimitError, TruncatedError


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: object
    y: object = 2


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError


class HostileMapping(Mapping[object, object]):
    def __getitem__(self, key: object) -> object:
        raise RuntimeError

    def __iter__(self) -> Iterator[object]:
        raise RuntimeError

    def __len__(self) -> int:
        return 1


class HostileModel:
    def model_dump(self, **_: object) -> object:
        raise ValueError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**63, 2**63),
        (2**64, str(2**64)),
        (-(2**63) - 1, str(-(2**63) - 1)),
        ({"a": [2**70]}, {"a": [str(2**70)]}),
        (float("nan"), None),
        (float("-inf"), None),
        (b"ab\xff", "ab\\xff"),
        ("a\udcff", "a\\udcff"),
        ({"\ud800": 1}, {"\\ud800": 1}),
        (
            {1: 1, None: 2, False: 3, (1, 2): 4, 1.5: 5},
            {"1": 1, "false": 3, "null": 2, "(1, 2)": 4, "1.5": 5},
        ),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (Path("a/b"), "a/b"),
        (Colour.RED, "red"),
        ({"c": {1: Colour.RED}}, {"c": {"1": "red"}}),
        (Point(1), {"x": 1, "y": 2}),
        (Point({1: 2**70}), {"x": {"1": str(2**70)}, "y": 2}),
        (Hostile(), f"<{__name__}.Hostile>"),
        (HostileMapping(), f"<{__name__}.HostileMapping>"),
        (
            {1: HostileMapping(), "m": MappingProxyType({1: b"x"})},
            {"1": f"<{__name__}.HostileMapping>", "m": {"1": "x"}},
        ),
        (HostileModel(), f"<{__name__}.HostileModel>"),
        ((1, (2,)), [1, [2]]),
    ],
)
def test_dumps_writes_what_orjson_refuses(value: object, expected: object) -> None:
    assert json.loads(codec.dumps(value)) == expected


def test_dumps_writes_integers_that_python_does_not_print() -> None:
    assert codec.dumps(10**5000) == b'"%b"' % hex(10**5000).encode()


def test_dumps_drops_addresses_of_unknown_objects() -> None:
    assert codec.dumps(object()) == b'"<object object>"'


def test_dumps_ends_on_cycles_and_depth() -> None:
    loop: list[object] = []
    loop += [loop, loop]
    assert codec.dumps(loop) == b'["<cycle>","<cycle>"]'
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    assert len(codec.dumps(deep)) < 200
    for levels in range(58, 300):  # whatever the depth, it can be read again
        deep = 1
        for _ in range(levels):
            deep = {"a": deep}
        codec.loads(codec.dumps(deep))
    wide: object = 2**70
    for _ in range(40):  # 2**40 leaves, if followed
        wide = [wide, wide]
    assert len(codec.dumps(wide)) < 50_000_000


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))  # surrogates too
    | st.binary()
    | st.dates(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.none() | st.binary(), inner)
    ),
    max_leaves=20,
)


@given(anything)
def test_dumps_never_raises_and_loads_reads_it(value: object) -> None:
    data = codec.dumps(value)
    assert data == codec.dumps(value)
    codec.loads(data)
    data.decode()


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(plain, st.sampled_from([None, 2]))
def test_loads_is_the_inverse_for_plain_values(value: object, indent: int | None) -> None:
    assert codec.loads(codec.dumps(value)) == value
    assert codec.loads(json.dumps(value, indent=indent).encode()) == value


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b'{"a":1,"a":1}', CorruptError),
        (b'{"a": {"b":1, "b":2}}', CorruptError),
        (b'[{"x":"}"},{"k":1,"\\u006b":2}]', CorruptError),
        (b"NaN", CorruptError),
        (b'{"a":Infinity}', CorruptError),
        (b'"\\ud800"', CorruptError),
        (b'"\xff"', CorruptError),
        (b"{}}", CorruptError),
        (b"[1]]", CorruptError),
        (b"{]", CorruptError),
        (b'{"a":1}x', CorruptError),
        (b'{"a":1', TruncatedError),
        (b'{"a":"\\', TruncatedError),
        (b'{"a', TruncatedError),
        (b"[" * 10**6, LimitError),
        (b"[" * 10**6 + b"]" * 10**6, LimitError),
        (b'{"a":' * 200 + b"1" + b"}" * 200, LimitError),
        (b"[" + b"[]," * 10**7 + b"[]]", LimitError),
        (b'[{"a":' * 50 + b"0" + b"}]" * 51, CorruptError),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else "",
)
def test_loads_refuses(data: bytes, error: type[BundleError]) -> None:
    with pytest.raises(error):
        codec.loads(data)


def test_loads_counts_only_what_stands_outside_strings() -> None:
    text = '[{",' * 50_000 + '\\" \\\\'
    limits = Limits(nodes=10, nesting=3)
    assert codec.loads(codec.dumps({"a": [text]}), limits) == {"a": [text]}


@given(st.integers(0, 7), st.integers(0, 3))
def test_loads_sees_strings_across_its_chunks(backslashes: int, shift: int) -> None:
    # The chunk is 1 MiB: the backslashes and the quote behind them lie around its end.
    text = "x" * ((1 << 20) - 4 - shift) + "\\" * backslashes + '"[[[[' + "]" * 5
    assert codec.loads(codec.dumps([text]), Limits(nesting=2)) == [text]


@pytest.mark.parametrize(
    "data", [b"9" * 1000, b'{"a":-' + b"9" * 100_000 + b"}", b"1e400", b"1" + b"0" * 400]
)
def test_loads_huge_numbers_in_bounded_time(data: bytes) -> None:
    with contextlib.suppress(CorruptError):
        codec.loads(data)


def test_digest_is_of_the_stored_bytes() -> None:
    assert codec.digest("") == "e3b0c44298fc1c149afbf4c8996fb924"
    assert codec.digest("a\udcff") == codec.digest("a\\udcff") == codec.digest(codec.clean("a\udcff"))


@given(st.binary(max_size=3000))
def test_a_frame_comes_back(data: bytes) -> None:
    packed = codec.compress(data)
    assert packed == codec.compress(data)
    (frame,) = codec.frames(packed)
    assert frame == (0, len(packed), len(data))
    assert codec.inflate(packed, frame, Meter(DEFAULT, len(packed))) == data


def _joined(*parts: bytes) -> bytes:
    return b"".join(codec.inflate(p, f, Meter(DEFAULT, len(p))) for p in parts for f in codec.frames(p))


def test_frames_of_other_writers_are_walked() -> None:
    data = bytes(range(256)) * 2000
    streamed = zstandard.ZstdCompressor(level=1).compressobj()
    unknown_size = streamed.compress(data) + streamed.flush()
    repeated = zstandard.ZstdCompressor(write_checksum=True).compress(b"\0" * 1_000_000)  # RLE blocks
    skippable = b"\x53\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    magicless_end = codec.compress(b"")
    whole = skippable + unknown_size + repeated + skippable + magicless_end + codec.compress(b"z")
    assert _joined(whole) == data + b"\0" * 1_000_000 + b"z"
    for cut in range(1, len(whole)):
        try:
            found = list(codec.frames(whole[:cut]))
        except TruncatedError:
            continue
        assert found == [f for f in codec.frames(whole) if f.end <= cut]


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("where", [-1, -4, 15, 5])
def test_damage_in_a_frame_is_seen(sized: bool, where: int) -> None:
    compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=sized)
    data = bytearray(compressor.compress(b"abc" * 1000))
    assert _joined(bytes(data)) == b"abc" * 1000
    data[where] ^= 0x10
    with pytest.raises((CorruptError, TruncatedError)):
        _joined(bytes(data))


@pytest.mark.parametrize("sized", [True, False])
def test_a_bomb_ends_at_the_meter(sized: bool) -> None:
    compressor = zstandard.ZstdCompressor(write_content_size=sized)
    bomb = compressor.compress(b"\0" * (256 << 20))
    assert len(bomb) < 32768
    meter = Meter(DEFAULT, len(bomb))
    with pytest.raises(LimitError):
        codec.inflate(bomb, next(codec.frames(bomb)), meter)
    assert meter.used <= (256 << 20)


def test_a_window_beyond_the_limit_is_refused() -> None:
    params = zstandard.ZstdCompressionParameters(window_log=30, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=params).compressobj()
    data = compressor.compress(b"a") + compressor.flush()
    with pytest.raises(CorruptError):
        _joined(data)


@settings(max_examples=300)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_walk_or_raise(data: bytes, magic: bool) -> None:
    data = codec.ZSTD_MAGIC + data if magic else data
    try:
        for frame in codec.frames(data):
            codec.inflate(data, frame, Meter(Limits(decompressed=1 << 20), len(data)))
    except BundleError:
        pass


@pytest.mark.parametrize("seed", range(10))
def test_flushed_parts_read_back_before_the_end(seed: int) -> None:
    rng = random.Random(seed)
    frame, written, expected = codec.FlushingCompressor(), b"", 0
    for n in range(rng.randrange(3, 30)):
        part = (
            b"record %d\n" % n * rng.randrange(20_000)
        )  # compresses so well that input ends long before output
        written += frame.add(part, b"\n")
        expected += len(part) + 1
        assert sum(map(len, codec.stream(io.BytesIO(written)))) == expected
        assert (
            sum(
                map(
                    len,
                    codec.stream_all(
                        io.BytesIO(b"\x50\x2a\x4d\x18\0\0\0\0" + codec.compress(b"x") + written)
                    ),
                )
            )
            == expected + 1
        )
    written += frame.finish()
    assert len(list(codec.frames(written))) == 1
    (found,) = codec.frames(written)
    assert len(codec.inflate(written, found, Meter(DEFAULT, 1 << 30))) == expected
