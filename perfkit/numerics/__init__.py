"""The correctness gate: raw errors of a verify run -> rows, verdicts and reasons; pure, without torch."""

from perfkit.numerics.judging import CaseJudgement, Judgement, judge, judge_case
from perfkit.numerics.rule import ACCEPTABLE_RELATIVE_ERROR, Row, judge_tensor
from perfkit.numerics.tolerances import TOLERANCES, Tolerance, tolerance_named
from perfkit.numerics.verdicts import Verdict, combine

__all__ = [
    "ACCEPTABLE_RELATIVE_ERROR",
    "TOLERANCES",
    "CaseJudgement",
    "Judgement",
    "Row",
    "Tolerance",
    "Verdict",
    "combine",
    "judge",
    "judge_case",
    "judge_tensor",
    "tolerance_named",
]
