"""The version of perfkit, stated once."""

__version__ = "0.1.0"
