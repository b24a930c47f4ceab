"""One training or inference step of a layer, the same for every program that runs one."""

from __future__ import annotations

from typing import Any

import torch

from perfkit.errors import PerfkitError
from perfkit.wire.payloads import Direction

from .calling import where_is
from .targets import LayerTarget
from .tensors import count_nonfinite, mean_square, named_tensors


class NonFinite(PerfkitError):  # noqa: N818 - names what was found
    """A step produced NaN or infinite values."""


class LayerStep:
    """Runs forward and backward of a layer, or forward alone where nothing requires grad.

    A step: every gradient None; `outputs = module(**inputs)`; the loss is the mean of squares of each
    floating output in fp32 (fp64 stays), summed over the outputs; `loss.backward()`.
    """

    def __init__(self, target: LayerTarget) -> None:
        self.target = target
        self.module = target.module
        self.inputs = target.inputs
        self._leaves = _leaves(target)

    @property
    def direction(self) -> Direction:
        """`full` where a parameter or an input requires grad, else `forward`."""
        return "full" if self._leaves else "forward"

    def __call__(self) -> Any:
        """One whole step; returns the module's outputs, which a timing loop should drop at once."""
        self.clear_grads()
        return self.run()

    def clear_grads(self) -> None:
        """Sets every gradient to None: kept ones would be added to, which costs time and memory."""
        for leaf in self._leaves.values():
            leaf.grad = None
        assert all(leaf.grad is None for leaf in self._leaves.values())

    def run(self) -> Any:
        """The step without clearing gradients first.

        Raises:
            PerfkitError: gradients are asked for, and no output depends on what requires grad.
        """
        outputs = self.module(**self.inputs)
        if self._leaves:
            self._loss(outputs).backward()  # type: ignore[no-untyped-call]
        return outputs

    def grads(self) -> dict[str, torch.Tensor | None]:
        """Gradients of the last step: `grad:layers.0.weight`, `grad:x`; None where none arrived."""
        return {f"grad:{name}": leaf.grad for name, leaf in self._leaves.items()}

    def check_finite(self) -> None:
        """Runs one step and looks for NaN and infinity in outputs and gradients.

        Raises:
            NonFinite: naming the first tensors that hold any, with their counts.
        """
        outputs = self()
        grads = [(name, grad) for name, grad in self.grads().items() if grad is not None]
        require_finite([*named_tensors(outputs, "output"), *grads], subject=self.target.name)

    def _loss(self, outputs: Any) -> torch.Tensor:
        tensors = [t for _, t in named_tensors(outputs, "output") if t.is_floating_point() or t.is_complex()]
        if not any(tensor.requires_grad for tensor in tensors):
            raise PerfkitError(
                f"No output of {self.target.name} depends on what requires grad.",
                why=f"{where_is(self.module.forward)} cut the history, for instance by no_grad or detach.",
                do="To measure the forward alone, call requires_grad_(False) on the module and its inputs.",
            )
        loss = mean_square(tensors[0])
        for tensor in tensors[1:]:
            loss = loss + mean_square(tensor)
        return loss


def _leaves(target: LayerTarget) -> dict[str, torch.Tensor]:
    """Parameters and inputs that require grad, by name; an input that shares a name gets a prefix."""
    leaves: dict[str, torch.Tensor] = {
        name: parameter for name, parameter in target.module.named_parameters() if parameter.requires_grad
    }
    for name, tensor in named_tensors(target.inputs, ""):
        if tensor.requires_grad:
            leaves[f"inputs.{name}" if name in leaves else name] = tensor
    return leaves


def require_finite(tensors: list[tuple[str, torch.Tensor]], *, subject: str) -> None:
    """Refuses NaN and infinity.

    Raises:
        NonFinite: naming up to five tensors that hold any, with their counts.
    """
    found = []
    for name, tensor in tensors:
        num_nan, num_inf = count_nonfinite(tensor)
        if num_nan or num_inf:
            found.append(f"{name} ({num_nan} NaN and {num_inf} Inf of {tensor.numel()})")
    if found:
        raise NonFinite(
            f"{subject} produced values that are not finite.",
            why=f"Found in {', '.join(found[:5])}{' and others' if len(found) > 5 else ''}.",
            do="Check how its inputs and weights are initialised: times of NaN runs mislead.",
        )
