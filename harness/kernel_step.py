"""Forward, backward and both of one kernel through one provider."""

from __future__ import annotations

from typing import Any

import torch

from perfkit.errors import PerfkitError
from perfkit.wire.payloads import Direction

from .step import require_finite
from .targets import KernelTarget
from .tensors import named_tensors

_UPSTREAM_SEED_OFFSET = 1


class KernelStep:
    """Calls one provider of a kernel in each direction, with gradients None before each call.

    The upstream gradient is random, fixed and equal for all providers. A backward never runs twice on
    one forward: `retain_graph=True` fails on the donated buffers of compiled backwards, and some
    kernels overwrite what they saved.
    """

    def __init__(self, target: KernelTarget, provider: str) -> None:
        self.target = target
        self.provider = provider
        self.inputs = target.inputs
        self._call = target.provider(provider)
        self._leaves = {name: target.inputs[name] for name in target.grad_names}
        self._upstream: list[torch.Tensor] | None = None
        self._pending: list[torch.Tensor] | None = None

    @property
    def directions(self) -> tuple[Direction, ...]:
        """What can be timed: all three where an input requires grad, else forward alone."""
        return ("forward", "backward", "full") if self._leaves else ("forward",)

    def forward(self) -> Any:
        """One forward, which saves for backward as in training; returns the outputs."""
        return self._call(**self.inputs)

    def prepare_backward(self) -> None:
        """What `backward` needs and must not be timed with: cleared gradients and a forward."""
        self.clear_grads()
        self._pending = self._differentiable(self.forward())

    def backward(self) -> None:
        """Backward of the forward that `prepare_backward` ran; one call per preparation.

        Raises:
            PerfkitError: nothing was prepared since the last call.
        """
        if self._pending is None:
            raise PerfkitError(
                f"Cannot run the backward of {self.target.name} twice.",
                why="Each backward consumes the forward that was prepared for it.",
                do="Call prepare_backward before each backward.",
            )
        outputs, self._pending = self._pending, None
        torch.autograd.backward(outputs, self._upstream_for(outputs))

    def full(self) -> Any:
        """Forward and backward; returns the outputs."""
        self.clear_grads()
        outputs = self.forward()
        differentiable = self._differentiable(outputs)
        torch.autograd.backward(differentiable, self._upstream_for(differentiable))
        return outputs

    def call(self, direction: Direction) -> Any:
        """One timed call of a direction; `backward` needs `prepare_backward` before it."""
        return {"forward": self.forward, "backward": self.backward, "full": self.full}[direction]()

    def clear_grads(self) -> None:
        """Sets the gradients of all inputs to None."""
        for leaf in self._leaves.values():
            leaf.grad = None

    def grads(self) -> dict[str, torch.Tensor | None]:
        """Gradients of the last backward: `grad:x`; None where none arrived."""
        return {f"grad:{name}": leaf.grad for name, leaf in self._leaves.items()}

    def check_finite(self) -> None:
        """Runs every direction once and looks for NaN and infinity in outputs and gradients.

        Raises:
            NonFinite: naming the tensors that hold any.
        """
        outputs = self.full() if self._leaves else self.forward()
        grads = [(name, grad) for name, grad in self.grads().items() if grad is not None]
        subject = f"{self.target.name} ({self.provider})"
        require_finite([*named_tensors(outputs, "output"), *grads], subject=subject)

    def _differentiable(self, outputs: Any) -> list[torch.Tensor]:
        found = [tensor for _, tensor in named_tensors(outputs, "output") if tensor.requires_grad]
        if not found:
            raise PerfkitError(
                f"The provider {self.provider} of {self.target.name} has no backward.",
                why=f"Its outputs do not require grad, though {', '.join(self._leaves)} do.",
                do="Give it an autograd function, or let the recipe's inputs not require grad.",
            )
        return found

    def _upstream_for(self, outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        if self._upstream is None:
            self._upstream = upstream_gradients(outputs, seed=self.target.seed)
        return self._upstream


def upstream_gradients(outputs: list[torch.Tensor], *, seed: int) -> list[torch.Tensor]:
    """Standard normal gradients, one per output, in the outputs' dtypes and contiguous.

    Drawn in fp32 and then cast, so that providers with other output dtypes get the same numbers
    up to rounding.
    """
    generator = torch.Generator(outputs[0].device).manual_seed(seed + _UPSTREAM_SEED_OFFSET)
    return [
        torch.randn(o.shape, generator=generator, device=o.device, dtype=torch.float32).to(o.dtype)
        for o in outputs
    ]
