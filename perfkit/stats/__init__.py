"""Statistics on one number per process: intervals, paired ratios, and numbers printed honestly.

The unit of replication is the process. Samples inside one process share its clocks, memory layout
and compiled code, so they are reduced to their median before anything here sees them; treating them
as independent trials calls identical code different far more often than the stated error rate.
"""

from perfkit.stats.digits import format_bytes, format_percent, format_rate, format_ratio, format_us
from perfkit.stats.intervals import MIN_CONFIRMED, ProcessInterval, process_interval
from perfkit.stats.paired import MIN_SIGN_FLIP_PAIRS, PairedRatio, paired_ratio
from perfkit.stats.summary import median, percentile, spread_percent

__all__ = [
    "MIN_CONFIRMED",
    "MIN_SIGN_FLIP_PAIRS",
    "PairedRatio",
    "ProcessInterval",
    "format_bytes",
    "format_percent",
    "format_rate",
    "format_ratio",
    "format_us",
    "median",
    "paired_ratio",
    "percentile",
    "process_interval",
    "spread_percent",
]
