"""GPU facts from a stand-in NVML, device names and CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import pytest

from perfkit.errors import UsageError
from perfkit.machine.device import default_device, device_slug, find_gpu, name_slug, visible_gpus
from perfkit.machine.gpus import list_gpus
from tests.support.fake_nvml import FakeGpu, FakeNvml

TWO = FakeNvml(FakeGpu(uuid="GPU-aaaa"), FakeGpu(name="NVIDIA A100-SXM4-80GB", uuid="GPU-bbbb"))


def test_all_facts_of_a_gpu() -> None:
    library = FakeNvml(FakeGpu(pids=(11, 12), reasons=0x40 | 0x4, utilization=97, temperature_c=88))
    gpus = list_gpus(library)
    assert gpus.watched
    assert gpus.driver == "570.1"
    (gpu,) = gpus.gpus
    assert gpu.name == "NVIDIA H200"
    assert gpu.memory_bytes == 141 * 2**30
    assert gpu.process_ids == (11, 12)
    assert gpu.slowdown_reasons == ("hardware thermal slowdown",)
    assert (gpu.utilization_percent, gpu.temperature_c, gpu.persistence) == (97, 88, True)
    assert library.num_open == 0


def test_what_a_driver_does_not_support_is_unknown_not_zero() -> None:
    library = FakeNvml(FakeGpu(pids=None, utilization=None, clock_mhz=None, persistence=None, reasons=None))
    (gpu,) = list_gpus(library).gpus
    assert gpu.process_ids is None
    assert gpu.utilization_percent is None
    assert gpu.sm_clock_mhz is None
    assert gpu.persistence is None
    assert gpu.slowdown_reasons == ()


def test_without_nvml_nothing_is_watched_and_the_reason_is_kept() -> None:
    gpus = list_gpus(FakeNvml(why_not="Library Not Found"))
    assert not gpus.watched
    assert "Library Not Found" in gpus.why_not
    assert gpus.gpus == ()


@pytest.mark.parametrize(
    ("stated", "uuids"),
    [
        (None, ["GPU-aaaa", "GPU-bbbb"]),
        ("", []),
        ("-1", []),
        ("1", ["GPU-bbbb"]),
        ("1,0", ["GPU-bbbb", "GPU-aaaa"]),
        ("0,7,1", ["GPU-aaaa"]),
        ("GPU-b", ["GPU-bbbb"]),
        ("GPU-", []),
    ],
)
def test_visible_devices(stated: str | None, uuids: list[str]) -> None:
    environ = {} if stated is None else {"CUDA_VISIBLE_DEVICES": stated}
    assert [g.uuid for g in visible_gpus(list_gpus(TWO), environ=environ)] == uuids


def test_default_device() -> None:
    assert default_device(list_gpus(TWO), environ={}) == "cuda:0"
    assert default_device(list_gpus(TWO), environ={"CUDA_VISIBLE_DEVICES": ""}) == "cpu"
    assert default_device(list_gpus(FakeNvml(why_not="none")), environ={}) == "cpu"


def test_a_cuda_index_counts_visible_gpus() -> None:
    gpu = find_gpu("cuda:0", list_gpus(TWO), environ={"CUDA_VISIBLE_DEVICES": "1"})
    assert gpu is not None
    assert gpu.index == 1
    assert device_slug("cuda:0", list_gpus(TWO), environ={"CUDA_VISIBLE_DEVICES": "1"}) == "a100"


def test_a_gpu_that_is_not_there_is_a_usage_error_that_names_those_that_are() -> None:
    with pytest.raises(UsageError, match="no device cuda:2") as caught:
        find_gpu("cuda:2", list_gpus(TWO), environ={})
    assert "cuda:1 (NVIDIA A100-SXM4-80GB)" in caught.value.why


def test_slugs_of_the_cpu_and_of_an_unwatched_gpu() -> None:
    unwatched = list_gpus(FakeNvml(why_not="none"))
    assert device_slug("cpu", unwatched) == "cpu"
    assert device_slug("cuda:0", unwatched) == "gpu"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("AMD Instinct MI300X", "mi300x"),
        ("NVIDIA Graphics Device", "device"),
        ("", "gpu"),
    ],
)
def test_name_slugs(name: str, slug: str) -> None:
    assert name_slug(name) == slug
