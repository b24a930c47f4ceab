"""Numbers for storages in the order in which a step first meets them, and the writes that each has seen."""

from __future__ import annotations

from typing import Any

import torch

from .torch_private import weak_storage


class Storages:
    """Names storages without keeping them alive.

    A weak reference keeps the address of a dead storage from being given to a new one, so that a number
    never means two storages.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._refs: list[Any] = []
        self._num_writes: list[int] = []
        self._external: list[int] = []

    def meet(self, tensor: torch.Tensor) -> int:
        """The number of an argument's storage; a first sight means that it existed before the step."""
        number = self._number(tensor)
        if number is None:
            number = self._add(tensor)
            self._external.append(number)
        return number

    def make(self, tensor: torch.Tensor) -> int:
        """The number of a result's storage; a first sight means that the op allocated it."""
        number = self._number(tensor)
        return self._add(tensor) if number is None else number

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor's storage was met or made."""
        return self._number(tensor) is not None

    def version(self, number: int) -> int:
        """Writes that the step has made to a storage."""
        return self._num_writes[number]

    def write(self, number: int) -> int:
        """Counts a write; returns the version that it makes."""
        self._num_writes[number] += 1
        return self._num_writes[number]

    @property
    def external(self) -> tuple[int, ...]:
        """Storages that existed before the step."""
        return tuple(self._external)

    def written_and_alive(self) -> set[tuple[int, int]]:
        """(storage, latest version) of what the step wrote and somebody still holds."""
        alive = (n for n, ref in enumerate(self._refs) if self._num_writes[n] and not ref.expired())
        return {(number, self._num_writes[number]) for number in alive}

    def _number(self, tensor: torch.Tensor) -> int | None:
        return self._numbers.get(tensor.untyped_storage()._cdata)

    def _add(self, tensor: torch.Tensor) -> int:
        ref = weak_storage(tensor)
        number = len(self._refs)
        self._numbers[ref.cdata] = number
        self._refs.append(ref)
        self._num_writes.append(0)
        return number


def has_storage(tensor: torch.Tensor) -> bool:
    """Whether the tensor's elements lie in one strided storage (sparse, nested and MKLDNN ones do not)."""
    return tensor.layout == torch.strided and not tensor.is_nested and tensor.device.type != "meta"
