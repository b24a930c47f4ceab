"""Reading profiler traces and computing exact numbers from them, in integer nanoseconds."""

from perfkit.trace.families import Family, family_of
from perfkit.trace.kernels import KernelRow, kernel_sum_us, kernel_table, kernel_union_us
from perfkit.trace.labels import LabelTimes, label_times
from perfkit.trace.reader import Trace, read_trace

__all__ = [
    "Family",
    "KernelRow",
    "LabelTimes",
    "Trace",
    "family_of",
    "kernel_sum_us",
    "kernel_table",
    "kernel_union_us",
    "label_times",
    "read_trace",
]
