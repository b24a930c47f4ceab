"""One fresh process per slot: spawn it, read its one reply, bound its life, name its fate; stores nothing."""

from perfkit.launch.slot import run_slot
from perfkit.launch.watching import DeviceWatch, WatchFactory

__all__ = ["DeviceWatch", "WatchFactory", "run_slot"]
