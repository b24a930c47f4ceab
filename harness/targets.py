"""What a loaded target is: a layer with its inputs, or a kernel with its reference and providers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from perfkit.errors import PerfkitError

from .calling import near_names

PROVIDER_PREFIX = "provider_"


class ProviderNotInstalled(PerfkitError):  # noqa: N818 - a state, not a fault
    """The library that a provider comes from cannot be imported here."""


@dataclass(frozen=True, kw_only=True)
class LayerTarget:
    """A module on its device and the keywords of one call: a step is `module(**inputs)`."""

    name: str
    module: nn.Module
    inputs: dict[str, Any]
    recipe_module: ModuleType
    """The Python module that the recipe's or the user's file became."""
    file: Path
    """What `recipe_module` was really loaded from: the variant's file where one replaces it."""
    device: torch.device
    seed: int


@dataclass(frozen=True, kw_only=True)
class KernelTarget:
    """One op: inputs, a dtype-generic reference, the kernel under test and other providers."""

    name: str
    inputs: dict[str, Any]
    """Keywords of every provider: tensors, and Python scalars such as eps."""
    recipe_module: ModuleType
    file: Path
    device: torch.device
    seed: int

    @property
    def reference(self) -> Callable[..., Any]:
        """The recipe's `reference`, uncompiled."""
        function: Callable[..., Any] = self.recipe_module.reference
        return function

    @property
    def grad_names(self) -> tuple[str, ...]:
        """Names of the inputs that require grad."""
        return tuple(n for n, v in self.inputs.items() if isinstance(v, torch.Tensor) and v.requires_grad)

    @property
    def providers(self) -> tuple[str, ...]:
        """Every name that `provider` takes."""
        declared = [n.removeprefix(PROVIDER_PREFIX) for n in vars(self.recipe_module) if _is_provider(n)]
        return ("target", "eager", "compile", *declared)

    def provider(self, name: str) -> Callable[..., Any]:
        """The callable behind `target`, `eager`, `compile` or the suffix of a `provider_<suffix>`.

        `compile` is the reference under torch.compile with static shapes. Graph breaks are allowed, as
        they are for a user who compiles it; `trees.require_graphs` refuses a run that compiled nothing.

        Raises:
            PerfkitError: no such provider.
            ProviderNotInstalled: from the returned callable, when the provider's library is missing.
        """
        if name == "eager":
            return self.reference
        if name == "compile":
            return torch.compile(self.reference, dynamic=False)
        attribute = "target" if name == "target" else f"{PROVIDER_PREFIX}{name}"
        function = vars(self.recipe_module).get(attribute)
        if name not in self.providers or not callable(function):
            raise PerfkitError(
                f"The kernel {self.name} has no provider {name!r}.",
                why=f"{self.file} defines {', '.join(self.providers)}.",
                do=f"Choose one of these{near_names(name, self.providers)}.",
            )
        return _only_if_installed(name, function)


def _is_provider(attribute: str) -> bool:
    return attribute.startswith(PROVIDER_PREFIX) and attribute != PROVIDER_PREFIX


def _only_if_installed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ImportError as error:
            raise ProviderNotInstalled(
                f"The provider {name} is not installed.",
                why=f"Importing {error.name or 'its library'} failed: {error.msg}.",
                do="Install that library into this environment, or leave the provider out.",
            ) from error

    return call
