"""What a file is, by its first bytes, and the forms around a bundle: gzip and zip."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Literal

from structdump.bundle import codec, journal
from structdump.bundle.limits import Limits, Meter
from structdump.errors import CorruptError, LimitError, NotABundleError, TruncatedError


def kind(data: bytes) -> Literal["zstd", "gzip", "zip", "json"] | None:
    """Return what the data is by its first bytes, or None for what can't be a bundle."""
    if data[:4] == codec.ZSTD_MAGIC or (data[1:4] == b"\x2a\x4d\x18" and data[0] & 0xF0 == 0x50):
        return "zstd"
    if data[:2] == b"\x1f\x8b":
        return "gzip"
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "zip"
    return "json" if data[: journal.SNIFF].lstrip(b" \t\r\n\xef\xbb\xbf")[:1] == b"{" else None


def gunzip(data: bytes, limits: Limits) -> bytes:
    """Return the content of a gzip file. TruncatedError, CorruptError or LimitError."""
    meter, out = Meter(limits, len(data)), bytearray()
    while data:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            try:
                piece = member.decompress(data, 1 << 20)
            except zlib.error as e:
                raise CorruptError(f"the gzip data is damaged: {e}; get the file again") from None
            data = member.unconsumed_tail
            if not piece and not data and not member.eof:
                raise TruncatedError("the gzip data ends early: the file was cut; get it again")
            _hold(out, piece, meter, limits)
        data = member.unused_data.lstrip(b"\0")
    return bytes(out)


def unzip(data: bytes, limits: Limits) -> bytes:
    """Return the one file in a zip; its name is not looked at.

    Raises NotABundleError if it holds none or several, TruncatedError, CorruptError or LimitError.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    except Exception as e:  # noqa: BLE001  # zipfile raises many kinds on damaged input
        end = data.rfind(b"PK\x05\x06")  # its last record, of at least 22 bytes
        if end < 0 or len(data) - end < 22:
            raise TruncatedError("the zip has no directory at its end: it was cut; get it again") from None
        raise CorruptError(f"the zip is damaged: {e}") from None
    if len(members) != 1:
        raise NotABundleError(f"the zip holds {len(members)} files; it must hold one bundle")
    member, meter, out = members[0], Meter(limits, len(data)), bytearray()
    if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotABundleError(
            "the zip is encrypted, or compressed in a way that is not read; unpack it first"
        )
    try:
        with archive.open(member) as file:
            while piece := file.read(1 << 20):
                _hold(out, piece, meter, limits)
    except LimitError:
        raise
    except Exception as e:  # noqa: BLE001  # as above
        raise CorruptError(f"the zip is damaged: {e}") from None
    return bytes(out)


def _hold(out: bytearray, piece: bytes, meter: Meter, limits: Limits) -> None:
    meter.add(len(piece))
    out += piece
    if len(out) > limits.document:
        raise LimitError(f"the file inflates to more than {limits.document:,} bytes")
