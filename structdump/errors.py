"""Every error structdump raises, as one tree; each carries the exit code its command ends with.

::

    StructdumpError                 1
    ├── UsageError                  2   bad arguments, bad configuration
    │   └── ConfigError             2   a setting is unknown or has a bad value
    ├── BundleError                 3   a file cannot be read as a bundle
    │   ├── NotABundleError         3   another kind of file, or none
    │   ├── TruncatedError          3   the file ends before the bundle does
    │   ├── CorruptError            3   the bytes or the JSON are damaged
    │   ├── UnsupportedVersionError 3   written in another major version of the format
    │   └── LimitError              3   opening it would take more than the allowed memory
    ├── SourceError                 3   a directory or log to pack holds nothing usable
    └── CaptureError                1   a capture cannot start
"""

from __future__ import annotations


class StructdumpError(Exception):
    """Base of all errors that structdump raises on purpose.

    `exit_code` is what the command line exits with when the error ends a command.
    """

    exit_code = 1


class UsageError(StructdumpError):
    """The call is wrong: an argument or a combination of arguments makes no sense."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting is unknown or its value is bad; the message names the valid ones."""


class BundleError(StructdumpError):
    """A file cannot be read as a bundle. The subclasses say why."""

    exit_code = 3


class NotABundleError(BundleError):
    """The file does not exist, cannot be opened, or is no bundle at all."""


class TruncatedError(BundleError):
    """The file ends before the bundle does: an interrupted copy or upload."""


class CorruptError(BundleError):
    """The compressed bytes or the JSON in them are damaged or break the format's rules."""


class UnsupportedVersionError(BundleError):
    """The bundle has another major format version; the message says which structdump reads it."""


class LimitError(BundleError):
    """Opening the file would take more memory, nesting or entries than a bundle may have."""


class SourceError(StructdumpError):
    """A dump directory or a log holds nothing that can be packed."""

    exit_code = 3


class CaptureError(StructdumpError):
    """A capture cannot start, for instance because PyTorch is missing."""
