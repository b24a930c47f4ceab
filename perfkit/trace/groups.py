"""Which group of lanes a device slice belongs to, and how the groups are ordered and titled."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path

import msgspec

from perfkit.errors import UsageError
from perfkit.trace.events import KERNEL_CATS, MEASURED_CATS, MEMCPY_CATS, MEMSET_CATS

COMPUTE = "compute"


class GroupRule(msgspec.Struct, frozen=True, kw_only=True):
    """Slices of this group: the first rule whose pattern occurs wins."""

    group: str
    kernel: str = ""
    """Regular expression searched in the kernel name; "" matches no name."""
    collective: str = ""
    """Regular expression searched in the `Collective name` argument; "" matches none."""


class LaneSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to lay out a compacted trace. Every field can be set in a TOML file."""

    rules: tuple[GroupRule, ...]
    order: tuple[str, ...]
    """Groups from top to bottom; a group that is not listed comes after them, by name."""
    labels: dict[str, str]
    """Row title of a group; a group that is not listed is titled by its name."""
    annotation_pattern: str
    """Pipeline annotations. Groups `stage`, `op` and `microbatch` (may be empty) must be named in it."""
    operations: dict[str, str] = {}
    """Own names of pipeline operations -> F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, ..."""

    def label(self, group: str) -> str:
        """Row title of a group."""
        return self.labels.get(group, group.replace("_", " "))

    def rank(self, group: str) -> tuple[int, str]:
        """Sort key of a group."""
        return (self.order.index(group) if group in self.order else len(self.order), group)

    def group_of(self, name: str, *, cat: str, collective: str = "") -> str:
        """The group of one device slice; `sync` for anything on a device track that measured nothing."""
        if cat in MEMCPY_CATS:
            return "memcpy"
        if cat in MEMSET_CATS:
            return "memset"
        if cat not in KERNEL_CATS:
            return "sync"
        return _group_of_kernel(self.rules, name, collective)


DEFAULT_LANES = LaneSettings(
    rules=(
        # The argument is exact where the profiler recorded it; NCCL builds all-to-all from SendRecv kernels.
        GroupRule(group="all_to_all", collective=r"all_?to_?all"),
        GroupRule(group="all_gather", collective=r"all_?gather", kernel=r"(?i)^nccl.*AllGather|all_gather"),
        GroupRule(
            group="reduce_scatter",
            collective=r"reduce_?scatter",
            kernel=r"(?i)^nccl.*ReduceScatter|reduce_scatter",
        ),
        GroupRule(
            group="all_reduce",
            collective=r"all_?reduce",
            kernel=r"(?i)^nccl.*AllReduce|cross_device_reduce|all_?reduce",
        ),
        GroupRule(group="broadcast", collective=r"broadcast", kernel=r"(?i)^nccl.*Broadcast"),
        GroupRule(group="reduce", collective=r"reduce", kernel=r"(?i)^nccl.*Reduce"),
        GroupRule(group="send_recv", collective=r"send|recv", kernel=r"(?i)^nccl.*SendRecv"),
        GroupRule(
            group="other_communication", collective=r".", kernel=r"(?i)^(nccl|rccl|msccl)|multimem_|nvshmem"
        ),
    ),
    order=(
        COMPUTE,
        "all_gather",
        "reduce_scatter",
        "all_reduce",
        "all_to_all",
        "broadcast",
        "reduce",
        "send_recv",
        "other_communication",
        "memcpy",
        "memset",
        "sync",
    ),
    labels={
        "all_gather": "all-gather",
        "reduce_scatter": "reduce-scatter",
        "all_reduce": "all-reduce",
        "all_to_all": "all-to-all",
        "send_recv": "send / receive",
    },
    annotation_pattern=r"^PP:(?P<stage>\d+)(?P<op>SEND_F|RECV_F|SEND_B|RECV_B|UNSHARD|RESHARD|REDUCE_GRAD|[FBIW])"
    r"(?P<microbatch>\d*)$",
)

COMMUNICATION_GROUPS = frozenset(rule.group for rule in DEFAULT_LANES.rules)


@functools.lru_cache(maxsize=65536)
def _group_of_kernel(rules: tuple[GroupRule, ...], name: str, collective: str) -> str:
    for rule in rules:
        if collective and rule.collective and re.search(rule.collective, collective):
            return rule.group
        if not collective and rule.kernel and re.search(rule.kernel, name):
            return rule.group
    return COMPUTE if not collective else "other_communication"


def read_lane_settings(path: Path) -> LaneSettings:
    """Lane settings from a TOML file: keys `rules`, `order`, `labels`, `annotation_pattern`, `operations`.

    All are optional. Own rules are tried before the built-in ones; labels are added to the built-in ones.

    Raises:
        UsageError: the file cannot be read, has an unknown key, or a pattern is no regular expression.
    """
    try:
        given = tomllib.loads(path.read_text())
        merged = {
            "rules": [*given.pop("rules", []), *msgspec.to_builtins(DEFAULT_LANES.rules)],
            "order": given.pop("order", DEFAULT_LANES.order),
            "labels": {**DEFAULT_LANES.labels, **given.pop("labels", {})},
            "annotation_pattern": given.pop("annotation_pattern", DEFAULT_LANES.annotation_pattern),
            "operations": given.pop("operations", {}),
            **given,
        }
        settings = msgspec.convert(merged, LaneSettings)
        for rule in settings.rules:
            re.compile(rule.kernel)
            re.compile(rule.collective)
        missing = {"stage", "op", "microbatch"} - set(re.compile(settings.annotation_pattern).groupindex)
    except (OSError, ValueError, TypeError, re.error, msgspec.MsgspecError) as error:
        raise UsageError(
            f"Cannot use the lane settings in {path}.", why=f"{error}.", do="Correct the file."
        ) from error
    if missing:
        raise UsageError(
            f"Cannot use the lane settings in {path}.",
            why=f"annotation_pattern lacks the named group(s) {', '.join(sorted(missing))}.",
            do="Write them as (?P<stage>...), (?P<op>...) and (?P<microbatch>...).",
        )
    return settings


def is_on_device(cat: str) -> bool:
    """Whether slices of this category lie on device streams and are packed into lanes."""
    return cat in MEASURED_CATS or cat == "cuda_sync"
