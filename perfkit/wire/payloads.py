"""What each harness program answers. One struct per program, told apart by the tag `program`."""

from __future__ import annotations

from typing import Literal

import msgspec

Direction = Literal["forward", "backward", "full"]
LaunchState = Literal["launch", "graph"]
CacheState = Literal["cold", "warm"]
Clock = Literal["cuda_events", "perf_counter"]


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one direction in one launch state and one cache state."""

    direction: Direction
    launch: LaunchState
    cache: CacheState
    fate: Literal["ok", "not_capturable", "failed"] = "ok"
    reason: str = ""
    samples_us: tuple[float, ...] = ()
    """One per step (or per call), in order; empty unless the fate is ok."""
    clock: Clock = "cuda_events"


class KernelUse(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel name (CPU: one op name) over one step."""

    name: str
    num_calls: float
    time_us: float
    """Sum over the calls of one step."""


class KernelRun(msgspec.Struct, frozen=True, kw_only=True):
    """The kernels of one direction, from a profiled run that follows the timed one."""

    direction: Direction
    cache: CacheState
    time_us: float
    """Sum of kernel durations per step; kernels on several streams can overlap."""
    num_kernels: float
    names_sha256: str
    """Of the sorted set of kernel names: tells processes apart that picked other kernels."""
    kernels: tuple[KernelUse, ...] = ()


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel recipe's `work` declares for one direction: the least bytes and FLOPs of one pass."""

    direction: Direction
    num_read_bytes: int
    num_written_bytes: int
    num_flops: int

    @property
    def num_bytes(self) -> int:
        """Read and written together."""
        return self.num_read_bytes + self.num_written_bytes


class StepTimes(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="time_step"):
    """Answer of `time_step`, and of `take_profile` when `trace_file` is set."""

    timings: tuple[Timing, ...]
    kernel_runs: tuple[KernelRun, ...] = ()
    """CUDA: kernels. CPU: top-level ops, whose sum is op time, not kernel time."""
    peak_memory_bytes: int | None = None
    """CUDA: peak allocation inside the timed steps. CPU: None, since torch does not account for it."""
    resident_memory_bytes: int | None = None
    """CUDA: allocated before the step (weights, inputs)."""
    num_graphs: int | None = None
    """Graphs compiled until the timed steps began; None for a tree that compiles nothing."""
    cold_compile_s: float | None = None
    num_warmup_steps: int = 0
    """Steps that really ran before timing."""
    stable: bool = True
    """False when the warm-up limit ended before step times settled."""
    inputs_sha256: str = ""
    """Digest of weights, buffers and inputs: equal seeds must give equal digests in every process."""
    output_sum: float | None = None
    """Position-weighted sum of outputs and gradients in float64: sees sign and order, unlike a norm."""
    working_set_bytes: int | None = None
    attention_kernels: tuple[str, ...] = ()
    work: tuple[Work, ...] = ()
    """Kernels whose recipe declares it; empty otherwise."""
    trace_file: str = ""
    """Name of the trace in the slot folder; "" when none was taken."""
    num_traced_steps: int = 0


class Costs(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="count_costs"):
    """Answer of `count_costs`: where the ledger and the labelled trace lie, and whether to trust them."""

    ledger_file: str
    trace_file: str
    """Labelled trace: every op wrapped in a `pk:<op index>` range."""
    plain_trace_file: str = ""
    """As many steps without labels (CUDA: device activity alone), whose durations the labels get."""
    num_ops: int
    num_traced_steps: int
    plain_kernel_time_us: float
    """Kernel (CPU: op) time per step of an unlabelled profiled run in the same process."""
    labelled_kernel_time_us: float
    same_ops: bool
    """The labelled run executed the same op sequence as the ledger run."""
    notes: tuple[str, ...] = ()


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """One measured ceiling, with the spread it was seen at."""

    name: str
    """`read`, `write`, `copy_1_1`, `triad_2_1`, `gemm_bf16`, `launch_floor`, ..."""
    value: float
    unit: str
    """`bytes_per_s`, `flops_per_s` or `us`."""
    num_samples: int
    spread_percent: float
    """(p75 - p25) / median of the samples, in percent."""
    how: str
    """One line: kernel, size, statistic."""


class Peaks(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="measure_peaks"):
    """Answer of `measure_peaks`: what this device can do, measured."""

    device_key: str
    """Cache key: GPU UUID, driver and torch version; or CPU model, threads and torch version."""
    rates: tuple[Rate, ...]
    cache_bytes: int
    """L2 of the GPU, or the last-level cache of the CPU; 0 when unknown."""
    measured_at: str

    def rate(self, name: str) -> Rate | None:
        """The rate of that name, or None where it could not be measured."""
        return next((r for r in self.rates if r.name == name), None)


class TensorCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One output or gradient, compared in the golden dtype (see perfkit/numerics for the rule)."""

    name: str
    """`output`, `output[1]`, `grad:x`, `grad:layers.0.wq.weight`."""
    role: Literal["output", "gradient"]
    shape: tuple[int, ...]
    dtype: str
    reference_error: float | None
    target_error: float | None
    rounding_floor: float | None
    golden_scale: float | None
    same_shape: bool = True
    same_dtype: bool = True
    same_nonfinite: bool = True
    """NaN, +Inf and -Inf stand at the same positions in reference and target."""
    num_nonfinite: int = 0
    missing: str = ""
    """Which side has no such tensor: a gradient that is None, an output that is absent."""
    rel_l2_target: float | None = None
    """|target - golden| / |golden| in L2."""
    rel_l2_reference: float | None = None
    digest_target: str = ""
    max_ulp: float | None = None
    """Largest distance between target and golden rounded to the dtype, in units of its spacing there (1
    for integers): 0 is rounded correctly."""


class CheckedCase(msgspec.Struct, frozen=True, kw_only=True):
    """All tensors of one case under one seed."""

    case: str
    seed: int
    golden_dtype: str
    tensors: tuple[TensorCheck, ...]
    repeats_equal: bool | None = None
    """Whether running the target again on identical inputs gave identical bits; None if not tried."""
    narrow_golden_ops: tuple[str, ...] = ()
    """Ops of the golden run whose floating output was narrower than the golden dtype."""
    target_is_reference: bool = False
    """The very code of the reference was checked against itself, which proves nothing."""
    notes: tuple[str, ...] = ()


class Verified(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="verify_numerics"):
    """Answer of `verify_numerics`: raw errors; the verdict is computed outside, without torch."""

    cases: tuple[CheckedCase, ...]
    subject_ran: str
    """What executed: `compiled (2 graphs)`, `triton`, `triton interpreter`, `eager`."""


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="describe_machine"):
    """Answer of `describe_machine`: what only torch can tell about this machine."""

    gpus: tuple[str, ...]
    cuda_works: bool
    cuda_error: str
    triton_works: bool
    triton_error: str
    compile_works: bool
    compile_error: str
    attention_backends: tuple[str, ...]
    """SDPA backends that ran a small bf16 (CPU: fp32) problem here."""
    default_fp32_precision: str
    compiler: str
    """Path of the C compiler that Inductor or Triton would use; "" when none was found."""


Payload = StepTimes | Costs | Peaks | Verified | MachineFacts
