"""Where a number was measured: software, hardware and settings, as the child found them."""

from __future__ import annotations

import msgspec


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One NVIDIA GPU as torch sees it."""

    name: str
    uuid: str
    capability: str
    """Compute capability, `9.0`."""
    num_sms: int
    memory_bytes: int
    l2_bytes: int


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded with every slot."""

    python: str
    torch: str
    triton: str | None
    cuda: str | None
    driver: str | None
    cpu: str
    num_threads: int
    device: str
    gpu: Gpu | None
    fp32_precision: str
    """What torch reports for fp32 matmuls after our setting was applied."""
    target_file: str
    """The file that the target was really imported from."""
    packages: dict[str, str] = {}
    """Versions of the libraries that providers came from, such as liger-kernel."""
    omp_wait_policy: str = ""
    """How idle OpenMP threads wait: `PASSIVE` (they sleep) unless the user's environment says otherwise."""
    compile_cache: str = "private"
    """`private` (fresh Inductor cache folder per slot), `shared` or `off`."""
