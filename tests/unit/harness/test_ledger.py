"""The ledger against bytes and FLOPs computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from perfkit_harness.ledger import record_ledger
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from perfkit.wire.ledger import Ledger, Op


def ledger_of(step: Callable[..., Any], *args: Any) -> Ledger:
    return record_ledger(lambda: step(*args))


def only_op(step: Callable[..., Any], *args: Any) -> Op:
    (op,) = ledger_of(step, *args).ops
    return op


def read_bytes(op: Op) -> list[int]:
    return [use.num_bytes for use in op.reads]


def written_bytes(op: Op) -> list[int]:
    return [use.num_bytes for use in op.writes]


def names(ledger: Ledger, phase: str = "") -> list[str]:
    return [op.name.split(".")[1] for op in ledger.ops if phase in ("", op.phase)]


def test_add_reads_both_inputs_and_writes_the_sum() -> None:
    op = only_op(torch.add, torch.ones(3, 5), torch.ones(3, 5))
    assert (op.name, op.kind, op.phase) == ("aten.add.Tensor", "glue", "forward")
    assert read_bytes(op) == [60, 60]
    assert written_bytes(op) == [60]


def test_the_same_tensor_twice_is_read_once() -> None:
    x = torch.ones(3, 5)
    assert read_bytes(only_op(torch.mul, x, x)) == [60]


def test_a_broadcast_operand_counts_once() -> None:
    op = only_op(torch.mul, torch.ones(3, 5), torch.ones(5, dtype=torch.bfloat16))
    assert read_bytes(op) == [60, 10]


def test_an_expanded_operand_counts_its_own_elements() -> None:
    x = torch.ones(5)
    ledger = ledger_of(lambda: x.expand(7, 5) + torch.ones(7, 5))
    assert names(ledger) == ["ones", "add"]
    assert read_bytes(ledger.ops[1]) == [20, 140]
    assert ledger.ops[1].reads[0].view == (0, (5,), (1,))


def test_views_are_no_ops_and_share_their_storage() -> None:
    x = torch.ones(4, 6)
    ledger = ledger_of(lambda: x.view(24).unflatten(0, (6, 4)).t()[1:3].transpose(0, 1).detach().exp())
    (op,) = ledger.ops
    assert op.name == "aten.exp.default"
    assert read_bytes(op) == [2 * 6 * 4]
    assert ledger.external == (op.reads[0].storage,)


def test_a_matrix_and_its_transpose_are_the_same_part() -> None:
    x = torch.ones(4, 6)
    first, second = ledger_of(lambda: (x.exp(), x.t().exp())).ops
    assert first.reads == second.reads


def test_a_strided_slice_has_no_holes() -> None:
    x = torch.ones(8, 10)
    op = only_op(lambda: x[::2, 1:4].exp())
    assert read_bytes(op) == [4 * 3 * 4]
    assert op.reads[0].view == (1, (4, 3), (20, 1))
    assert op.reads[0].storage_bytes == 320


def test_overlapping_windows_count_distinct_elements() -> None:
    x = torch.ones(2, 10)
    assert read_bytes(only_op(lambda: x.unfold(1, 4, 2).exp())) == [2 * 10 * 4]
    assert read_bytes(only_op(lambda: x.unfold(1, 2, 4).exp())) == [2 * 6 * 4]


def test_cat_reads_all_parts_and_writes_the_whole() -> None:
    op = only_op(lambda a, b: torch.cat([a, b]), torch.ones(3, 4), torch.ones(2, 4))
    assert read_bytes(op) == [48, 32]
    assert written_bytes(op) == [80]


def test_in_place_ops_make_a_new_version() -> None:
    x = torch.ones(6)

    def step() -> torch.Tensor:
        x.add_(1.0)
        return x * 2

    ledger = ledger_of(step)
    add, mul = ledger.ops
    assert (read_bytes(add), written_bytes(add)) == ([24], [24])
    assert [use.version for use in (*add.reads, *add.writes, *mul.reads)] == [0, 1, 1]
    assert (add.writes[0].storage, 1) in ledger.escaping


def test_copy_and_fill_do_not_read_what_they_overwrite() -> None:
    x, y = torch.ones(6), torch.ones(6, dtype=torch.float64)
    copy, fill, zero = ledger_of(lambda: (x.copy_(y), x.fill_(2.0), x[:2].zero_())).ops
    assert (read_bytes(copy), written_bytes(copy)) == ([48], [24])
    assert (read_bytes(fill), written_bytes(fill)) == ([], [24])
    assert (read_bytes(zero), written_bytes(zero)) == ([], [8])


def test_out_arguments_are_written_only() -> None:
    out = torch.empty(6)
    op = only_op(lambda a: torch.exp(a, out=out), torch.ones(6))
    assert (read_bytes(op), written_bytes(op)) == ([24], [24])


def test_allocation_is_no_op_and_filling_is_one() -> None:
    x = torch.ones(6)
    ledger = ledger_of(lambda: (torch.empty(9), torch.empty_like(x), torch.zeros(9), torch.ones_like(x)))
    assert names(ledger) == ["zeros", "ones_like"]
    assert [read_bytes(op) for op in ledger.ops] == [[], []]


def test_conversions_that_return_their_input_are_no_ops() -> None:
    x = torch.ones(6)
    ledger = ledger_of(lambda: (x.float(), x.contiguous(), x.to("cpu"), x.bfloat16()))
    assert names(ledger) == ["_to_copy"]
    assert (read_bytes(ledger.ops[0]), written_bytes(ledger.ops[0])) == ([24], [12])


def test_item_reads_a_scalar() -> None:
    op = only_op(lambda x: x.item(), torch.ones(()))
    assert (op.kind, read_bytes(op), written_bytes(op)) == ("glue", [4], [])


def test_complex_elements_have_eight_bytes() -> None:
    x = torch.ones(4, 6)
    op = only_op(lambda: torch.view_as_complex(x.view(4, 3, 2)) * 1j)
    assert (read_bytes(op), written_bytes(op)) == ([96], [96])


def test_embedding_reads_rows_and_not_the_table() -> None:
    table, ids = torch.ones(1000, 16), torch.tensor([3, 9, 3, 7])
    op = only_op(functional.embedding, ids, table)
    assert read_bytes(op) == [4 * 8, 3 * 16 * 4] or read_bytes(op) == [3 * 16 * 4, 4 * 8]
    assert written_bytes(op) == [4 * 16 * 4]
    (rows,) = (use for use in op.reads if use.itemsize == 4)
    assert rows.storage_bytes == 64000


def test_embedding_backward_writes_the_dense_gradient() -> None:
    table, ids = torch.ones(100, 16, requires_grad=True), torch.tensor([3, 9])
    ledger = ledger_of(lambda: functional.embedding(ids, table).sum().backward())
    (op,) = (o for o in ledger.ops if "embedding_dense_backward" in o.name)
    assert op.phase == "backward"
    assert written_bytes(op) == [6400]
    assert (op.writes[0].storage, op.writes[0].version) in ledger.escaping


@pytest.mark.parametrize(
    ("look_up", "num_elements"),
    [
        (lambda x: x.index_select(0, torch.tensor([1, 1, 5])), 2 * 6),
        (lambda x: x.index_select(1, torch.tensor([1, 1, 5])), 2 * 8),
        (lambda x: x.gather(1, torch.tensor([[0, 0], [2, 1]])), 3),
        (lambda x: x[torch.tensor([-1, 7])], 6),
        (lambda x: x[torch.tensor([1, 2]), torch.tensor([3, 3])], 2),
        (lambda x: x[:, torch.tensor([0, 5, 5])], 2 * 8),
        (lambda x: x[x > 40], 7),
    ],
)
def test_look_ups_read_what_they_name(
    look_up: Callable[[torch.Tensor], torch.Tensor], num_elements: int
) -> None:
    x = torch.arange(48.0).view(8, 6)
    op = next(
        op for op in ledger_of(look_up, x).ops if op.name.split(".")[1] in ("index", "gather", "index_select")
    )
    touched = {use.num_bytes for use in op.reads if use.storage_bytes == 192}
    assert num_elements * 4 in touched


def test_scattered_writes_touch_what_they_name() -> None:
    x = torch.zeros(8, 6)
    index, rows = torch.tensor([[1, 1, 2]]), torch.tensor([2, 4])

    def step() -> None:
        x.scatter_add_(0, index, torch.ones(1, 3))
        x.index_put_((rows,), torch.ones(2, 6))
        x.index_add_(0, rows, torch.ones(2, 6))

    scatter, put, add = (op for op in ledger_of(step).ops if op.name.split(".")[1] not in ("ones", "tensor"))
    assert written_bytes(scatter) == [3 * 4]
    assert 3 * 4 in read_bytes(scatter)
    assert written_bytes(put) == [12 * 4]
    assert [use.num_bytes for use in put.reads if use.storage == put.writes[0].storage] == []
    assert [use.num_bytes for use in add.reads if use.storage == add.writes[0].storage] == [12 * 4]


def test_a_lookup_in_the_loss_reads_one_element_per_target() -> None:
    logits, target = torch.randn(4, 50, requires_grad=True), torch.tensor([0, 1, -100, 3])
    ledger = ledger_of(lambda: functional.cross_entropy(logits, target).backward())
    forward = next(op for op in ledger.ops if "nll_loss_forward" in op.name)
    assert read_bytes(forward) == [3 * 4, 4 * 8] or read_bytes(forward) == [4 * 8, 3 * 4]
    backward = next(op for op in ledger.ops if "nll_loss_backward" in op.name)
    assert written_bytes(backward) == [4 * 50 * 4]
    assert 4 * 50 * 4 not in read_bytes(backward)


def test_mm_counts_bytes_and_flops() -> None:
    op = only_op(torch.mm, torch.ones(3, 5), torch.ones(7, 5).t())
    assert (op.kind, op.num_flops, op.flop_dtype) == ("gemm", 2 * 3 * 5 * 7, "fp32")
    assert (read_bytes(op), written_bytes(op)) == ([60, 140], [84])


def test_bmm_counts_the_batch() -> None:
    a, b = torch.ones(2, 3, 5, dtype=torch.float64), torch.ones(2, 5, 7, dtype=torch.float64)
    op = only_op(torch.bmm, a, b)
    assert (op.num_flops, op.flop_dtype) == (2 * 2 * 3 * 5 * 7, "fp64")
    assert (read_bytes(op), written_bytes(op)) == ([240, 560], [336])


def test_addmm_and_convolution_are_gemms() -> None:
    linear = only_op(nn.Linear(5, 7).requires_grad_(requires_grad=False), torch.ones(3, 5))
    assert (linear.name, linear.kind, linear.num_flops) == ("aten.addmm.default", "gemm", 210)
    assert sorted(read_bytes(linear)) == [28, 60, 140]
    conv = nn.Conv2d(2, 4, 3, bias=False).requires_grad_(requires_grad=False)
    op = only_op(conv, torch.ones(1, 2, 6, 6))
    assert (op.kind, op.num_flops) == ("gemm", 2 * 4 * 4 * (2 * 3 * 3) * 4)
    assert (read_bytes(op), written_bytes(op)) == ([288, 288], [256])


@pytest.mark.parametrize(("causal", "num_pairs"), [(False, 16 * 16), (True, 16 * 17 // 2)])
def test_attention_counts_the_pairs_that_the_mask_leaves(causal: bool, num_pairs: int) -> None:
    q, k, v = (torch.randn(2, 3, 16, 8, requires_grad=True) for _ in range(3))
    ledger = ledger_of(
        lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=causal).sum().backward()
    )
    forward, backward = (op for op in ledger.ops if op.kind == "attention")
    one = 2 * 3 * 16 * 8 * 4
    assert (forward.phase, backward.phase) == ("forward", "backward")
    assert forward.num_flops == 2 * 3 * num_pairs * 8 * 4
    assert backward.num_flops == 2 * 3 * num_pairs * 8 * 10
    assert read_bytes(forward) == [one] * 3
    assert written_bytes(forward) == [one, 2 * 3 * 16 * 4]
    assert written_bytes(backward) == [one] * 3
    # The gradient of the sum is one broadcast element.
    assert sorted(read_bytes(backward)) == [4, 2 * 3 * 16 * 4, *[one] * 4]


def test_causal_attention_with_fewer_keys_than_queries() -> None:
    q, k = torch.randn(1, 1, 6, 8), torch.randn(1, 1, 4, 8)
    op = only_op(lambda: functional.scaled_dot_product_attention(q, k, k, is_causal=True))
    assert op.num_flops == (1 + 2 + 3 + 4 + 4 + 4) * 8 * 4


def test_foreach_ops_touch_every_tensor_of_the_list() -> None:
    xs = [torch.ones(3), torch.ones(5)]
    op = only_op(lambda: torch._foreach_add_(xs, 1.0))
    assert (read_bytes(op), written_bytes(op)) == ([12, 20], [12, 20])


def test_ops_with_several_outputs_write_all_of_them() -> None:
    op = only_op(lambda x: functional.layer_norm(x, (8,)), torch.ones(4, 8))
    assert written_bytes(op) == [128, 16, 16]


def test_an_op_with_a_kernel_and_a_recipe_runs_its_kernel() -> None:
    x = torch.ones(4, requires_grad=True)
    assert "silu_backward" in names(ledger_of(lambda: functional.silu(x).sum().backward()), "backward")


def test_inference_mode_shows_the_same_ops() -> None:
    linear, x = nn.Linear(5, 7), torch.ones(2, 3, 5)
    q = torch.randn(1, 1, 6, 8)

    def step() -> None:
        linear(x)
        functional.scaled_dot_product_attention(q, q, q)

    with torch.inference_mode():
        inferred = ledger_of(step)
    assert names(inferred) == ["addmm", "_scaled_dot_product_flash_attention_for_cpu"]


def test_ops_of_unknown_libraries_are_opaque() -> None:
    library = torch.library.Library("perfkit_ledger_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    op = only_op(torch.ops.perfkit_ledger_test.twice, torch.ones(3))
    assert (op.kind, op.known_traffic) == ("opaque", False)
    assert (read_bytes(op), written_bytes(op)) == ([12], [12])


def test_library_algorithms_are_opaque_with_known_bytes() -> None:
    op = only_op(torch.sort, torch.ones(4))
    assert (op.kind, op.known_traffic) == ("opaque", True)
    assert (read_bytes(op), written_bytes(op)) == ([16], [16, 32])


def test_sparse_tensors_have_no_known_traffic() -> None:
    x = torch.eye(3).to_sparse()
    assert not ledger_of(lambda: torch.sparse.mm(x, torch.ones(3, 3))).ops[-1].known_traffic


def test_outputs_escape_and_intermediates_do_not() -> None:
    x = torch.ones(6)
    ledger = ledger_of(lambda: (x * 2).exp())
    mul, exp = ledger.ops
    assert [(use.storage, use.version) for use in exp.writes] == list(ledger.escaping)
    assert mul.writes[0].storage not in [storage for storage, _ in ledger.escaping]


def test_saved_tensors_and_gradients_escape() -> None:
    x = torch.ones(6, requires_grad=True)
    ledger = ledger_of(lambda: x.exp().sum().backward())
    exp = next(op for op in ledger.ops if "exp" in op.name)
    assert (exp.writes[0].storage, 1) in ledger.escaping
    gradient = ledger.ops[-1].writes[0]
    assert (gradient.storage, gradient.version) in ledger.escaping


def test_dead_storages_are_freed_and_never_take_another_ones_number() -> None:
    def step() -> None:
        for _ in range(20):
            torch.ones(1000).exp_()

    ledger = ledger_of(step)
    assert len({op.writes[0].storage for op in ledger.ops}) == 20
    assert ledger.escaping == ()


class _Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, weight = ctx.saved_tensors
        return grad * weight, (grad * x).sum(0)


class _Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Scale.apply(x, self.weight)


class _Block(nn.Module):
    def __init__(self, *, checkpointed: str = "") -> None:
        super().__init__()
        self.checkpointed = checkpointed
        self.linear, self.scaled, self.norm = nn.Linear(4, 4), _Scaled(), nn.LayerNorm(4)

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.scaled(functional.gelu(self.linear(x)))) + x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.checkpointed:
            return self.inner(x)
        return checkpoint(self.inner, x, use_reentrant=self.checkpointed == "reentrant")


def model_ledger(*blocks: nn.Module) -> Ledger:
    torch.manual_seed(0)
    module = nn.Sequential(*blocks)
    x = torch.randn(3, 4, requires_grad=True)
    leaves = {**dict(module.named_parameters()), "x": x}

    def step() -> torch.Tensor:
        out = module(x)
        out.pow(2).mean().backward()
        return out

    return record_ledger(step, module=module, leaves=leaves)


def test_backward_ops_carry_module_and_line_of_their_forward_op() -> None:
    ledger = model_ledger(_Block(), _Block())
    by_line: dict[str, set[str]] = {}
    for op in ledger.ops:
        if op.phase == "backward" and op.module.endswith("scaled"):
            by_line.setdefault(op.module, set()).add(op.source.split(" ")[1])
    assert by_line == {"0.scaled": {"_Scale.forward"}, "1.scaled": {"_Scale.forward"}}
    linear = [op for op in ledger.ops if op.phase == "backward" and op.kind == "gemm"]
    assert [op.module for op in linear] == ["1.linear", "1.linear", "0.linear", "0.linear"]
    assert all(op.source.startswith("test_ledger.py:") for op in linear)
    assert all(op.source.endswith("_Block.inner") for op in linear)


def test_accumulating_a_gradient_belongs_to_the_parameter() -> None:
    linear = nn.Linear(4, 4)
    module = nn.Sequential(linear, nn.ReLU(), linear)
    x = torch.randn(3, 4)
    ledger = record_ledger(
        lambda: module(x).sum().backward(), module=module, leaves=dict(module.named_parameters())
    )
    accumulated = [op for op in ledger.ops if op.source.startswith("gradient of")]
    assert {op.source for op in accumulated} <= {"gradient of 0.weight", "gradient of 0.bias"}
    assert all(op.module == "0" for op in accumulated)


@pytest.mark.parametrize("kind", ["reentrant", "non-reentrant"])
def test_recompute_is_told_from_forward_and_backward(kind: str) -> None:
    plain, again = model_ledger(_Block(), _Block()), model_ledger(_Block(), _Block(checkpointed=kind))
    assert names(again, "forward") == names(plain, "forward")
    assert sorted(names(again, "backward")) == sorted(names(plain, "backward"))
    recomputed = [op for op in again.ops if op.phase == "recompute"]
    assert {op.module for op in recomputed} >= {"1.linear", "1.scaled"}
    assert {op.module.split(".")[0] for op in recomputed} == {"1"}
    assert [op.name for op in recomputed if op.module == "1.scaled"] == ["aten.mul.Tensor"]
    gemms = [op.module for op in again.ops if op.phase == "backward" and op.kind == "gemm"]
    assert gemms == ["1.linear", "1.linear", "0.linear", "0.linear"]


def test_recompute_of_a_wrapped_forward_knows_its_module() -> None:
    blocks = _Block(), _Block()
    for block in blocks:
        inner = block.forward
        block.forward = lambda x, inner=inner: checkpoint(inner, x, use_reentrant=False)  # type: ignore[method-assign]
    gelus = [op for op in model_ledger(*blocks).ops if op.phase == "recompute" and "gelu" in op.name]
    assert [op.module for op in gelus] == ["1", "0"]


class _Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (out,) = ctx.saved_tensors
        return _Scale.apply(grad, out)


@pytest.mark.parametrize("reentrant", [True, False])
def test_functions_outside_modules_are_recomputed_too(reentrant: bool) -> None:
    x = torch.randn(3, 4, requires_grad=True)

    def step() -> None:
        checkpoint(lambda y: _Nested.apply(y.sin()), x, use_reentrant=reentrant).sum().backward()

    ledger = ledger_of(step)
    assert names(ledger, "forward")[:2] == ["sin", "exp"]
    assert names(ledger, "recompute") == ["sin", "exp"]
    # The Function that a backward itself calls is backward; the second product is that of the sine.
    assert names(ledger, "backward").count("mul") == 2


def test_totals_do_not_depend_on_the_order_of_modules() -> None:
    def totals(ledger: Ledger) -> tuple[int, int, int]:
        return (
            sum(use.num_bytes for op in ledger.ops for use in op.reads),
            sum(use.num_bytes for op in ledger.ops for use in op.writes),
            sum(op.num_flops for op in ledger.ops),
        )

    first = model_ledger(nn.Linear(4, 4), _Scaled(), nn.Linear(4, 4))
    second = model_ledger(nn.Linear(4, 4), nn.Linear(4, 4), _Scaled())
    assert totals(first) == totals(second)


def test_ids_are_stable() -> None:
    first, second = model_ledger(_Block(), _Block()), model_ledger(_Block(), _Block())
    assert first == second
    assert [op.index for op in first.ops] == list(range(len(first.ops)))


def test_compiled_code_is_taken_eagerly(clean_compiler: None) -> None:
    compiled = torch.compile(lambda x: (x * 2).exp(), backend="eager", fullgraph=True)
    assert names(ledger_of(compiled, torch.ones(3))) == ["mul", "exp"]


class _Halves(torch.Tensor):
    """A tensor that is stored as two halves along its first dim, as a sharded one is."""

    first: torch.Tensor
    second: torch.Tensor

    @staticmethod
    def __new__(cls, first: torch.Tensor, second: torch.Tensor) -> _Halves:
        shape = (first.shape[0] + second.shape[0], *first.shape[1:])
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=first.dtype)

    def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
        self.first, self.second = first, second

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        (whole,) = args
        return _Halves(func(whole.first), func(whole.second))


class _Plain(torch.Tensor):
    """A subclass without dispatch of its own."""


def test_tensor_subclasses_show_the_tensors_inside() -> None:
    halves = _Halves(torch.ones(3, 4), torch.ones(2, 4))
    ledger = ledger_of(lambda: halves.exp())
    assert [read_bytes(op) for op in ledger.ops] == [[48], [32]]
    assert names(ledger_of(lambda: torch.ones(3).as_subclass(_Plain).exp())) == ["ones", "exp"]
