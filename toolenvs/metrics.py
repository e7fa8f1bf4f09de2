"""What an evaluation may claim: avg@k, pass@k, pass^k and maj@k, with intervals over tasks.

Samples of one task are not independent, so every interval is *clustered by task*: a statistic is
first computed within each task, then averaged over tasks, and its standard error is that of the
tasks' values. Samples that cannot be judged (``valid`` False: the machine failed, the gold answer
is masked) are left out; they are never counted as wrong.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

import msgspec
import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_Z = 1.959963984540054  # the normal distribution's 97.5 % quantile
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_LONGEST_NUMBER = 400  # characters; longer ones are compared as text


class Estimate(msgspec.Struct, frozen=True):
    """A mean over tasks with its uncertainty.

    Attributes:
        value: the mean, in [0, 1]; NaN when there is no task to judge.
        low, high: 95 % interval, in [0, 1], around ``value``.
        se: cluster-robust standard error; NaN with fewer than two tasks.
        tasks: tasks that entered.
        samples: samples that entered.
    """

    value: float
    low: float
    high: float
    se: float
    tasks: int
    samples: int


def avg_at_k(
    right: Sequence[bool], tasks: Sequence[str], *, valid: Sequence[bool] | None = None
) -> Estimate:
    """Share of right samples: the mean over tasks of each task's mean.

    Args:
        right: whether each sample is right, shape ``(n,)``.
        tasks: the task of each sample, shape ``(n,)``.
        valid: False where a sample could not be judged, shape ``(n,)``; all valid when None.

    Raises:
        ValueError: The shapes differ.
    """
    groups = _group(tasks, valid, right)
    values = [sum(_right(right, rows)) / len(rows) for rows in groups]
    return _estimate(values, sum(map(len, groups)))


def pass_at_k(
    right: Sequence[bool], tasks: Sequence[str], k: int, *, valid: Sequence[bool] | None = None
) -> Estimate:
    """Probability that at least one of ``k`` samples of a task is right, without bias.

    ``1 - C(n-c, k) / C(n, k)`` for a task with ``c`` right ones among ``n`` valid samples. Tasks
    with fewer than ``k`` valid samples are left out.

    Args:
        right: as for ``avg_at_k``.
        tasks: likewise.
        k: samples drawn, at least 1.
        valid: as for ``avg_at_k``.

    Raises:
        ValueError: The shapes differ, or ``k < 1``.

    Source: Chen et al. 2021, arXiv:2107.03374, equation 1.
    """
    return _by_counts(right, tasks, k, valid, lambda n, c: 1.0 - _choose_share(n - c, n, k))


def pass_hat_k(
    right: Sequence[bool], tasks: Sequence[str], k: int, *, valid: Sequence[bool] | None = None
) -> Estimate:
    """Probability that all of ``k`` samples of a task are right (pass^k), without bias.

    ``C(c, k) / C(n, k)``. Arguments, omissions and errors are those of ``pass_at_k``.

    Source: Yao et al. 2024, tau-bench, arXiv:2406.12045, section 3.
    """
    return _by_counts(right, tasks, k, valid, lambda n, c: _choose_share(c, n, k))


def maj_at_k(
    right: Sequence[bool],
    tasks: Sequence[str],
    k: int,
    *,
    answers: Sequence[str | None],
    valid: Sequence[bool] | None = None,
) -> Estimate:
    """Share of tasks whose most frequent answer among the first ``k`` valid samples is right.

    Votes are counted by ``normalise``; right answers of a task all equal its gold answer, so they
    count as one answer however they are written. A tie counts as the share of right answers among
    the tied (what a random choice would give). A sample without an answer has no vote; a task
    without any vote counts 0. Tasks with fewer than ``k`` valid samples are left out.

    Args:
        right: as for ``avg_at_k``.
        tasks: likewise.
        k: samples that vote, at least 1.
        answers: the submitted text of each sample, None where there is none, shape ``(n,)``.
        valid: as for ``avg_at_k``.

    Raises:
        ValueError: The shapes differ, or ``k < 1``.

    Source: Wang et al. 2022, self-consistency, arXiv:2203.11171.
    """
    _check_k(k)
    groups = [rows[:k] for rows in _group(tasks, valid, right, answers) if len(rows) >= k]
    values = [_majority(_right(right, rows), [answers[i] for i in rows]) for rows in groups]
    return _estimate(values, sum(map(len, groups)))


def normalise(answer: str) -> str:
    """The form in which answers are compared for a vote: blanks, case and spelling of numbers.

    >>> normalise(" 1,250.0 "), normalise("$x = 3$"), normalise("Paris ")
    ('1250', 'x = 3', 'paris')
    """
    text = " ".join(answer.split()).strip("$ ").casefold()
    if len(text) > _LONGEST_NUMBER:
        return text
    plain = text.replace(",", "") if _GROUPED.fullmatch(text) else text
    try:
        number = Decimal(plain)
    except InvalidOperation:
        return text
    if not number.is_finite() or abs(number.adjusted()) > _LONGEST_NUMBER:
        return text
    digits = format(number, "f")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "0" if digits in ("-0", "") else digits


def interval(values: Sequence[float], samples: int) -> tuple[float, float, float]:
    """95 % interval for the mean of tasks' values in [0, 1], and its standard error.

    The standard error is that of the task means (cluster-robust, a cluster being a task). The
    interval is Wilson's with the effective number of samples that this error implies: unlike
    ``mean ± 1.96 se`` it stays in [0, 1] and does not shrink to a point where every task has the
    same value.

    Args:
        values: one value for each task, each in [0, 1], shape ``(tasks,)``.
        samples: samples behind them; the effective number never exceeds it.

    Returns:
        Lower end, upper end, standard error: ``(0, 1, nan)`` with fewer than two tasks.

    Source: Miller 2024, arXiv:2411.00640, section 2.2; Wilson 1927, JASA 22:209; effective
    size as in Korn and Graubard 1998, Survey Methodology 24:193.
    """
    count = len(values)
    if count < 2:
        return 0.0, 1.0, math.nan
    array: FloatArray = np.asarray(values, dtype=np.float64)
    mean = float(np.clip(array.mean(), 0.0, 1.0))
    se = float(array.std(ddof=1)) / math.sqrt(count)
    spread = mean * (1.0 - mean)
    size = float(count)
    if spread > 0.0:
        size = min(spread / se**2, samples) if se > 0.0 else float(samples)
    centre = (mean + _Z**2 / (2 * size)) / (1 + _Z**2 / size)
    half = _Z / (1 + _Z**2 / size) * math.sqrt(spread / size + _Z**2 / (4 * size**2))
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return min(low, mean), max(high, mean), se  # the ends may miss the mean by a rounding


def _by_counts(
    right: Sequence[bool],
    tasks: Sequence[str],
    k: int,
    valid: Sequence[bool] | None,
    value: Callable[[int, int], float],
) -> Estimate:
    _check_k(k)
    groups = [rows for rows in _group(tasks, valid, right) if len(rows) >= k]
    values = [value(len(rows), sum(_right(right, rows))) for rows in groups]
    return _estimate(values, sum(map(len, groups)))


def _estimate(values: Sequence[float], samples: int) -> Estimate:
    low, high, se = interval(values, samples)
    value = min(1.0, max(0.0, math.fsum(values) / len(values))) if values else math.nan
    return Estimate(value, min(low, value), max(high, value), se, len(values), samples)


def _group(
    tasks: Sequence[str], valid: Sequence[bool] | None, *columns: Sequence[object]
) -> list[list[int]]:
    """Rows of the valid samples of each task, tasks in the order in which they first appear."""
    for column in (*columns, *(() if valid is None else (valid,))):
        if len(column) != len(tasks):
            raise ValueError(f"{len(column)} values for {len(tasks)} samples: give one for each.")
    groups: dict[str, list[int]] = {}
    for row, task in enumerate(tasks):
        if valid is None or valid[row]:
            groups.setdefault(task, []).append(row)
    return list(groups.values())


def _right(right: Sequence[bool], rows: Sequence[int]) -> list[bool]:
    return [bool(right[row]) for row in rows]


def _choose_share(part: int, whole: int, k: int) -> float:
    """``C(part, k) / C(whole, k)``; Python's integers keep it exact until the division."""
    return math.comb(part, k) / math.comb(whole, k)


def _majority(right: Sequence[bool], answers: Sequence[str | None]) -> float:
    votes: Counter[tuple[bool, str]] = Counter()
    for good, answer in zip(right, answers, strict=True):
        if good:
            votes[True, ""] += 1
        elif answer is not None:
            votes[False, normalise(answer)] += 1
    if not votes:
        return 0.0
    most = max(votes.values())
    tied = [good for (good, _), count in votes.items() if count == most]
    return sum(tied) / len(tied)


def _check_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"k={k}: give at least 1.")
