"""A layer recipe whose cases misbehave in every way that a user's code can."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import torch
from torch import nn

kind = "layer"
cases = {
    "good": {"how": "good"},
    "raises": {"how": "raises"},
    "hangs": {"how": "hangs"},
    "out_of_memory": {"how": "out_of_memory"},
    "garbage": {"how": "garbage"},
    "exits": {"how": "exits"},
    "forks": {"how": "forks"},
    "nan": {"how": "nan"},
    "last": {"how": "good"},
}


class Hostile(nn.Module):
    """A linear layer, and whatever else the case asks for."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.how = how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        match self.how:
            case "raises":
                raise ValueError("the gate has no bias")
            case "hangs":
                time.sleep(3600)
            case "out_of_memory":
                raise MemoryError("cannot allocate")
            case "garbage":
                os.write(1, bytes(range(256)) * 50)
                os.write(2, b'\xff\xfe\x00{"payload": null}\n')
            case "exits":
                os._exit(0)
            case "forks":
                subprocess.Popen(
                    [sys.executable, "-c", "import time; time.sleep(3600)  # PERFKIT_TEST_GRANDCHILD"]
                )
            case "nan":
                x = x * float("nan")
        return self.linear(x)


def build(*, how: str, device: torch.device, dtype: torch.dtype) -> nn.Module:
    """The module."""
    return Hostile(how).to(device=device, dtype=dtype)


def inputs(*, device: torch.device, dtype: torch.dtype, **_: object) -> dict[str, torch.Tensor]:
    """One batch."""
    return {"x": torch.randn(4, 8, device=device, dtype=dtype, requires_grad=True)}
