"""Settings that are stated before the first op, and the record of where a number was measured."""

from __future__ import annotations

import ast
import importlib.metadata
import math
import os
import platform
import re
import sys
from pathlib import Path

import torch

from perfkit.wire.environment import Environment, Gpu
from perfkit.wire.spec import Spec

_PRECISION_BY_NAME = {"ieee": "highest", "tf32": "high"}
_OURS = {"torch", "triton", "perfkit", "perfkit_harness"}

CPUINFO = Path("/proc/cpuinfo")
CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")
DRIVER_FILES = (Path("/sys/module/nvidia/version"), Path("/proc/driver/nvidia/version"))


def settle(spec: Spec) -> None:
    """Applies the spec's global settings; call it before torch runs its first op.

    Threads (0 means the physical cores that this process may use), fp32 matmul precision on CPU and
    GPU, no deterministic algorithms, no cuDNN autotuning, and the spec's device as the current one.
    """
    torch.set_num_threads(spec.measure.num_threads or num_physical_cores())
    set_fp32_precision(spec.measure.fp32_precision)
    if torch.are_deterministic_algorithms_enabled():
        # Not called without need: it imports Inductor and Triton.
        torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = False
    device = torch.device(spec.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)


def set_fp32_precision(name: str) -> None:
    """States how fp32 matmuls run: `ieee` in full fp32, `tf32` on tensor cores.

    torch.set_float32_matmul_precision keeps the legacy and the per-backend setting in agreement; when
    only `fp32_precision` is set, code that reads `allow_tf32` raises (torch 2.13). Where the two still
    disagree afterwards, the per-backend setting is what counts.
    """
    torch.set_float32_matmul_precision(_PRECISION_BY_NAME[name])
    matmul = torch.backends.cuda.matmul
    if getattr(matmul, "fp32_precision", name) != name:
        matmul.fp32_precision = name


def fp32_precision(device: torch.device) -> str:
    """What torch reports for fp32 matmuls on this device: `ieee`, `tf32`, ..."""
    backend = torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn
    stated = getattr(getattr(backend, "matmul", None), "fp32_precision", None)
    return str(stated) if stated is not None else torch.get_float32_matmul_precision()


def read_environment(spec: Spec, *, device: torch.device, target_file: Path | None) -> Environment:
    """The software, hardware and settings of this process, as they are now."""
    return Environment(
        python=platform.python_version(),
        torch=str(torch.__version__),
        triton=_version_of("triton"),
        cuda=torch.version.cuda,
        driver=driver_version(),
        cpu=_cpu_model(),
        num_threads=torch.get_num_threads(),
        device=str(device),
        gpu=_gpu(device),
        fp32_precision=fp32_precision(device),
        target_file=str(target_file or ""),
        packages=_packages(spec, target_file),
        omp_wait_policy=os.environ.get("OMP_WAIT_POLICY", ""),
        compile_cache=_compile_cache(),
    )


def num_physical_cores() -> int:
    """Physical cores that this process may run on, no more than its cgroup's CPU quota.

    From the affinity mask and /proc/cpuinfo on Linux; elsewhere the logical CPUs.
    """
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    allowed = os.sched_getaffinity(0)
    cores = set()
    for block in _cpuinfo_blocks():
        if (number := int(block.get("processor", "-1"))) in allowed:
            cores.add((block.get("physical id", ""), block.get("core id", f"cpu{number}")))
    return max(1, min(len(cores) or len(allowed), _cgroup_cpus()))


def _cpuinfo_blocks() -> list[dict[str, str]]:
    if not CPUINFO.is_file():
        return []
    blocks = CPUINFO.read_text(encoding="ascii", errors="replace").strip().split("\n\n")
    return [dict(re.findall(r"^(.+?)\s*:[ \t]*(.*)$", block, re.MULTILINE)) for block in blocks]


def _cgroup_cpus() -> int:
    """CPUs that the cgroup's quota amounts to (version 2), rounded up; unlimited is a large number."""
    if CGROUP_QUOTA.is_file():
        limit, _, period = CGROUP_QUOTA.read_text(encoding="ascii").partition(" ")
        if limit != "max":
            return math.ceil(int(limit) / int(period))
    return sys.maxsize


def _cpu_model() -> str:
    for block in _cpuinfo_blocks():
        if model := block.get("model name"):
            return model
    return platform.processor() or platform.machine()


def driver_version() -> str | None:
    """Version of the loaded NVIDIA kernel module; None where Linux states none."""
    for file in DRIVER_FILES:
        if file.is_file() and (found := re.search(r"\d{3,}\.\d+(\.\d+)?", file.read_text())):
            return found.group()
    return None


def _gpu(device: torch.device) -> Gpu | None:
    if device.type != "cuda":
        return None
    properties = torch.cuda.get_device_properties(device)
    return Gpu(
        name=properties.name,
        uuid=str(properties.uuid),
        capability=f"{properties.major}.{properties.minor}",
        num_sms=properties.multi_processor_count,
        memory_bytes=properties.total_memory,
        l2_bytes=properties.L2_cache_size,
    )


def _version_of(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _packages(spec: Spec, target_file: Path | None) -> dict[str, str]:
    """Versions of the installed libraries that the target's file imports anywhere, and that are loaded."""
    names = {spec.target.source.partition(".")[0]} if spec.target else set()
    if target_file is not None:
        names |= _imported_names(target_file)
    names = {n for n in names if _is_installed(n)} - _OURS
    known = {name: _version_of(name) for name in sorted(names)}
    missing = {name for name, version in known.items() if version is None}
    found = {name: version for name, version in known.items() if version is not None}
    if missing:
        # Reads the file lists of every package, which takes seconds: only for those of another name.
        providers = importlib.metadata.packages_distributions()
        distributions = sorted({d for name in missing for d in providers.get(name, [])})
        found |= {d: importlib.metadata.version(d) for d in distributions}
    return found


def _is_installed(name: str) -> bool:
    """Whether a loaded module came from an installed package, rather than from a file beside the target."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and {"site-packages", "dist-packages"} & set(Path(file).parts) != set()


def _imported_names(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def _compile_cache() -> str:
    """`private` where the process was given a cache folder of its own, else torch's shared default."""
    if os.environ.get("TORCHINDUCTOR_FORCE_DISABLE_CACHES") == "1":
        return "off"
    return "private" if os.environ.get("TORCHINDUCTOR_CACHE_DIR") else "shared"
