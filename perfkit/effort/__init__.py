"""The folder of one investigation: append-only results, devlog and notebooks; atomic and resumable."""

from perfkit.effort.folder import Effort, Header, read_header

__all__ = ["Effort", "Header", "read_header"]
