"""Tables: alignment, escaping, numbers flush right; names shortened in the middle."""

from __future__ import annotations

import pytest

from perfkit.report.kernels_md import plain_kernel_name
from perfkit.report.markdown import code, is_numeric, markdown_table, shortened
from perfkit.report.words import change_text, time_unit
from perfkit.stats import process_interval


def test_columns_are_aligned_and_numbers_flush_right() -> None:
    table = markdown_table(("name", "time us"), [("short", "1.5"), ("a longer name", "102"), ("hole", "-")])
    assert table.splitlines() == [
        "| name          | time us |",
        "| ------------- | ------: |",
        "| short         |     1.5 |",
        "| a longer name |     102 |",
        "| hole          |       - |",
    ]


def test_pipes_and_line_breaks_cannot_break_the_table() -> None:
    lines = markdown_table(("a",), [("x | y\nz",)]).splitlines()
    assert lines[-1] == "| x \\| y z |"


def test_no_rows_make_no_table() -> None:
    assert markdown_table(("a", "b"), []) == ""


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells"):
        markdown_table(("a", "b"), [("only one",)])


@pytest.mark.parametrize(
    ("cells", "numeric"),
    [
        (["1", "-", ""], True),
        (["1.50 GiB", "512 B"], True),
        (["-12.3%", "+4%"], True),
        (["0.614x"], True),
        (["3.1e-03"], True),
        (["1 to 2"], False),
        (["4k"], False),
        (["-", ""], False),
        ([], False),
    ],
)
def test_which_columns_are_numbers(cells: list[str], numeric: bool) -> None:
    assert is_numeric(cells) is numeric


def test_long_names_keep_both_ends() -> None:
    text = shortened("a" * 50 + "z" * 50, most=30)
    assert len(text) == 30
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    assert shortened("short", most=30) == "short"


def test_code_survives_backticks() -> None:
    assert code("a`b\nc") == "`a'b c`"


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
            "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>)",
            "vectorized_elementwise_kernel<4, CUDAFunctor_add<BFloat16>, array<char*, 3ul> >",
        ),
        (
            "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(float*, int)",
            "cunn_SoftMaxForward<8, float>",
        ),
        ("triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_0"),
        ("aten::mm", "aten::mm"),
    ],
)
def test_plain_kernel_names(name: str, plain: str) -> None:
    assert plain_kernel_name(name) == plain


@pytest.mark.parametrize(
    ("medians_us", "unit"),
    [
        ([5.0, 2000.0], "us"),
        ([5.0, 20000.0], "ms"),
        ([5218.0, 8527.0], "ms"),
        ([], "us"),
    ],
)
def test_the_unit_of_a_column(medians_us: list[float], unit: str) -> None:
    assert time_unit([None, *(process_interval([m]) for m in medians_us)]) == unit


def test_before_and_after_share_unit_and_decimals() -> None:
    before = process_interval([20000.0, 20010.0, 20020.0])
    after = process_interval([15000.0, 15400.0, 15800.0])
    # The wider interval, of `after`, is about +/- 1 ms: 15.4 +/- 1.0.
    assert change_text(before, after) == "20.0 -> 15.4 ms (-23.0%)"
