"""Everything torch.compile did, in one small, structured, safe file."""

from __future__ import annotations

__version__ = "0.1.0"
