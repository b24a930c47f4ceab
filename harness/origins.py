"""Where each op comes from: phase, module and source line, with backward ops traced to their forward op."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from perfkit.wire.ledger import Phase

from .frames import in_function_of_checkpoint, owners, user_line
from .torch_private import graph_task, next_sequence_number, running_node

_WRAPPERS = frozenset({"_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"})
"""Attribute names that torch's wrappers put between a module and its child."""


@dataclass(frozen=True)
class Origin:
    """Phase, module name and source line of an op."""

    phase: Phase
    module: str = ""
    source: str = ""


class Origins:
    """Follows modules and autograd nodes through one step.

    An op's autograd node is made just before the op reaches a dispatch mode, so the last number given out
    belongs to it; in backward the running node's number leads back to the op. Numbers count per thread, and
    a GPU's backward runs on a thread of its own: nodes are kept by thread, and those of the thread itself
    come first only for backward passes inside a backward pass (reentrant checkpoints).
    """

    def __init__(
        self, module: nn.Module | None = None, leaves: Mapping[str, torch.Tensor] | None = None
    ) -> None:
        self._module_names = {id(m): _plain(name) for name, m in module.named_modules()} if module else {}
        self._leaf_names = {id(tensor): name for name, tensor in (leaves or {}).items()}
        self._running: list[tuple[str, int]] = []
        self._nodes: dict[tuple[int, int], tuple[Origin, int]] = {}
        self._next: dict[int, int] = {}
        self._home = threading.get_ident()

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """Watches module calls and node numbers inside the block.

        Hooks for all modules, not on each one: modules with hooks of their own may take slower paths.
        """
        before = register_module_forward_pre_hook(self._enter)
        after = register_module_forward_hook(self._leave, always_call=True)
        self._next[self._home] = next_sequence_number()
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def here(self) -> Origin:
        """The origin of the op that is being dispatched; call it once for every op, also for views."""
        task = graph_task()
        if task < 0:
            origin = Origin("forward", self._running[-1][0] if self._running else "", user_line())
        elif torch.is_grad_enabled() or self._in_recomputed_module() or in_function_of_checkpoint():
            origin = Origin("recompute", self._recomputed_module(task), user_line())
        else:
            self._next[threading.get_ident()] = next_sequence_number()
            return self._of_running_node(task)
        self._claim_nodes(origin, task)
        return origin

    def _in_recomputed_module(self) -> bool:
        """Checkpoints run forward again inside backward, with grad enabled. Inside an autograd.Function,
        where it is off, a module that was entered during backward tells, or else the frames do."""
        return bool(self._running and self._running[-1][1] >= 0)

    def _recomputed_module(self, task: int) -> str:
        """The module that runs again. A checkpoint around a module's forward calls no hook of that module:
        then the one whose method is running, else the one of the node that asked for the recompute."""
        if self._in_recomputed_module():
            return self._running[-1][0]
        running = next((self._module_names[i] for i in owners() if i in self._module_names), None)
        return self._of_running_node(task).module if running is None else running

    def _claim_nodes(self, origin: Origin, task: int) -> None:
        """Gives the nodes made since the last op to this one. A Function's node precedes its inner ops."""
        thread, number = threading.get_ident(), next_sequence_number()
        for made in range(self._next.get(thread, number - 1), number):
            self._nodes[thread, made] = (origin, task)
        self._next[thread] = number

    def _of_running_node(self, task: int) -> Origin:
        node = running_node()
        if node is None:
            return Origin("backward")
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            name = self._leaf_names.get(id(leaf), "")
            return Origin("backward", _plain(name).rpartition(".")[0], f"gradient of {name}" if name else "")
        made = self._made(int(node._sequence_nr()), task)
        return Origin("backward", made.module, made.source) if made else Origin("backward")

    def _made(self, number: int, task: int) -> Origin | None:
        thread = threading.get_ident()
        if thread != self._home:
            origin, made_in = self._nodes.get((thread, number), (None, task))
            if made_in < task:
                return origin
        return self._nodes.get((self._home, number), (None, 0))[0]

    def _enter(self, module: nn.Module, _args: Any) -> None:
        outer = self._running[-1][0] if self._running else ""
        self._running.append((self._module_names.get(id(module), outer), graph_task()))

    def _leave(self, _module: nn.Module, _args: Any, _output: Any) -> None:
        self._running.pop()


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)
