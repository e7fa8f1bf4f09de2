"""avg@k, pass@k, pass^k and maj@k against brute force, and what their intervals promise."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs import metrics

GROUPS = st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=5)


def flat(groups: Sequence[Sequence[bool]]) -> tuple[list[bool], list[str]]:
    """Columns of the samples of all tasks."""
    right = [good for group in groups for good in group]
    return right, [f"t{number}" for number, group in enumerate(groups) for _ in group]


def brute(group: Sequence[bool], k: int, judge: str) -> float:
    """A statistic of one task over every way to draw ``k`` of its samples."""
    test = any if judge == "any" else all
    draws = list(itertools.combinations(group, k))
    return sum(test(draw) for draw in draws) / len(draws)


@given(groups=GROUPS, k=st.integers(1, 6))
def test_pass_at_k_and_pass_hat_k_are_means_over_all_draws(
    groups: list[list[bool]], k: int
) -> None:
    """Both equal brute force over all subsets of size k; tasks with fewer samples are left out."""
    right, tasks = flat(groups)
    fit = [group for group in groups if len(group) >= k]
    for function, judge in ((metrics.pass_at_k, "any"), (metrics.pass_hat_k, "all")):
        found = function(right, tasks, k)
        assert found.tasks == len(fit)
        if fit:
            wanted = sum(brute(group, k, judge) for group in fit) / len(fit)
            assert found.value == pytest.approx(wanted, abs=1e-12)
        else:
            assert math.isnan(found.value)


@given(groups=GROUPS, k=st.integers(1, 6))
def test_the_statistics_are_ordered(groups: list[list[bool]], k: int) -> None:
    """pass^k <= avg@k <= pass@k on the same tasks, and all three agree for k = 1."""
    groups = [group for group in groups if len(group) >= k]
    if not groups:
        return
    right, tasks = flat(groups)
    low, middle, high = (
        metrics.pass_hat_k(right, tasks, k).value,
        metrics.avg_at_k(right, tasks).value,
        metrics.pass_at_k(right, tasks, k).value,
    )
    assert low <= middle + 1e-12
    assert middle <= high + 1e-12
    if k == 1:
        assert low == pytest.approx(high)


@given(groups=GROUPS, order=st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(
    groups: list[list[bool]], order: random.Random
) -> None:
    """Samples may arrive in any order."""
    right, tasks = flat(groups)
    rows = list(range(len(right)))
    order.shuffle(rows)
    shuffled = metrics.avg_at_k([right[i] for i in rows], [tasks[i] for i in rows])
    assert shuffled.value == pytest.approx(metrics.avg_at_k(right, tasks).value, abs=1e-12)


@given(groups=GROUPS, data=st.data())
def test_invalid_samples_are_as_if_they_were_not_there(
    groups: list[list[bool]], data: st.DataObject
) -> None:
    """C07: a sample that the machine failed moves no mean and no interval, whatever it holds."""
    right, tasks = flat(groups)
    valid = data.draw(st.lists(st.booleans(), min_size=len(right), max_size=len(right)))
    kept = [i for i, good in enumerate(valid) if good]
    without = metrics.avg_at_k([right[i] for i in kept], [tasks[i] for i in kept])
    with_them = metrics.avg_at_k(right, tasks, valid=valid)
    assert repr(with_them) == repr(without)


@given(groups=GROUPS)
def test_the_interval_holds_the_value(groups: list[list[bool]]) -> None:
    """0 <= low <= value <= high <= 1."""
    found = metrics.avg_at_k(*flat(groups))
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0


def test_an_interval_never_shrinks_to_a_point() -> None:
    """All right on 20 tasks does not mean certainty; one task says nothing of others."""
    twenty = metrics.avg_at_k([True] * 20, [str(i) for i in range(20)])
    assert twenty.value == twenty.high == 1.0
    assert 0.8 < twenty.low < 0.9
    one = metrics.avg_at_k([True] * 20, ["t"] * 20)
    assert (one.low, one.high) == (0.0, 1.0)


def test_samples_of_one_task_are_no_independent_evidence() -> None:
    """Eight equal samples of each task give the interval that one sample of each gives."""
    right = [i % 3 != 0 for i in range(60)]
    tasks = [str(i) for i in range(60)]
    single = metrics.avg_at_k(right, tasks)
    eightfold = metrics.avg_at_k(right * 8, tasks * 8)
    assert eightfold.se == pytest.approx(single.se)
    assert (eightfold.low, eightfold.high) == pytest.approx((single.low, single.high))


def test_the_standard_error_is_the_cluster_robust_one() -> None:
    """With equally many samples it is Miller's clustered formula (with T - 1 for T)."""
    rng = np.random.default_rng(0)
    scores = rng.random((40, 5)) < rng.random((40, 1))
    found = metrics.avg_at_k(scores.ravel().tolist(), [str(i) for i in range(40) for _ in range(5)])
    residuals = scores - scores.mean()
    robust = math.sqrt(float((residuals.sum(axis=1) ** 2).sum())) / scores.size
    assert found.se == pytest.approx(robust * math.sqrt(40 / 39))


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """In 400 seeded studies of 50 tasks and 4 samples, 93 to 98 % of intervals hold the truth."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        ability = rng.beta(2.0, 1.0, size=(50, 1))  # mean 2/3
        right = rng.random((50, 4)) < ability
        found = metrics.avg_at_k(
            right.ravel().tolist(), [str(i) for i in range(50) for _ in range(4)]
        )
        held += found.low <= 2 / 3 <= found.high
    assert 0.93 <= held / 400 <= 0.98


def brute_majority(rows: Sequence[tuple[bool, str | None]]) -> float:
    """The vote by hand: right answers are one class."""
    votes = [("right" if good else answer) for good, answer in rows if good or answer is not None]
    if not votes:
        return 0.0
    ranked = Counter(votes).most_common()
    top = [name for name, count in ranked if count == ranked[0][1]]
    return ("right" in top) / len(top)


@given(
    rows=st.lists(
        st.one_of(
            st.just((True, "7")),
            st.tuples(st.just(False), st.sampled_from(["1", "2", None])),
        ),
        min_size=1,
        max_size=7,
    )
)
def test_maj_at_k_is_the_vote(rows: list[tuple[bool, str | None]]) -> None:
    """It equals a vote counted by hand, ties as the share of right ones, no answer as no vote."""
    found = metrics.maj_at_k(
        [good for good, _ in rows],
        ["t"] * len(rows),
        len(rows),
        answers=[answer for _, answer in rows],
    )
    assert found.value == pytest.approx(brute_majority(rows))


def test_maj_at_k_counts_only_the_first_k() -> None:
    """Samples beyond k have no vote; a task with fewer than k is left out."""
    right = [True, False, False, True]
    answers = ["3", "4", "4", "3"]
    assert metrics.maj_at_k(right, ["a"] * 4, 1, answers=answers).value == 1.0
    assert metrics.maj_at_k(right, ["a"] * 4, 3, answers=answers).value == 0.0
    assert metrics.maj_at_k(right, ["a"] * 4, 5, answers=answers).tasks == 0


@pytest.mark.parametrize(
    ("left", "other"),
    [("18", "18.0"), ("1,250", "1250"), (" Paris", "paris"), ("-0", "0"), ("$5$", "5")],
)
def test_normalise_joins_spellings(left: str, other: str) -> None:
    """The same answer written twice is one vote."""
    assert metrics.normalise(left) == metrics.normalise(other)


@pytest.mark.parametrize(("left", "other"), [("1,2", "12"), ("1.5", "15"), ("(1,200)", "(1200)")])
def test_normalise_keeps_answers_apart(left: str, other: str) -> None:
    """Different answers stay different: a pair is no thousands separator."""
    assert metrics.normalise(left) != metrics.normalise(other)


@given(st.text(max_size=40))
def test_normalise_is_idempotent(text: str) -> None:
    """Normalising twice changes nothing more."""
    once = metrics.normalise(text)
    assert metrics.normalise(once) == once


@pytest.mark.parametrize("text", ["1e999999999", "nan", "-inf", "9" * 5000])
def test_normalise_survives_hostile_numbers(text: str) -> None:
    """A number without end is compared as text, at once."""
    assert metrics.normalise(text) == text.casefold()


def test_mistakes_of_the_caller_are_named() -> None:
    """Columns of different length and k < 1 are refused."""
    with pytest.raises(ValueError, match="2 values for 1 samples"):
        metrics.avg_at_k([True, False], ["a"])
    with pytest.raises(ValueError, match="at least 1"):
        metrics.pass_at_k([True], ["a"], 0)
    with pytest.raises(ValueError, match="3 values for 1 samples"):
        metrics.avg_at_k([True], ["a"], valid=[True, True, False])
