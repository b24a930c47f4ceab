"""perfkit finds out why a PyTorch model or Triton kernel is slow, and proves what made it faster."""

from perfkit.version import __version__

__all__ = ["__version__"]
