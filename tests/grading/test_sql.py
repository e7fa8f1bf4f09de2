"""Comparing results: bags, orders, columns, values, several databases, states."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.grading.databases import EMP, failed, judge, memory, table
from toolenvs.errors import UnknownNameError, UsageError
from toolenvs.grading.sql import (
    SqlPolicy,
    Trial,
    compare,
    grade,
    grade_alternatives,
    grade_instances,
    grade_state,
    read_outline,
    read_policy,
)

EXACT = SqlPolicy(rel_tol=0.0)
LOOSE = SqlPolicy(rel_tol=0.1)


def values() -> st.SearchStrategy[Any]:
    """Values that are equal now and then, nearly equal often, and of every kind."""
    tagged = st.sampled_from(
        [
            {"float": "nan"},
            {"float": "-inf"},
            {"decimal": "1.00"},
            {"decimal": "0.1"},
            {"date": "2020-01-01"},
            {"datetime": "2020-01-01T00:00:00"},
            {"bytes": "00"},
            {"interval": 60},
            {"array": [1, None]},
            {"json": {"a": 1}},
        ]
    )
    plain = st.sampled_from([None, True, False, 0, 1, 2, 10**30, 0.1, 0.3, 0.1 + 0.2, "", "1", "a"])
    near = st.sampled_from([1.0, 1.04, 1.09, 1.15, 1.2, 1.3, 100, 104, 2.5])
    return plain | near | tagged


VALUES = values()


@st.composite
def results(draw: st.DrawFn, *, of: st.SearchStrategy[Any] = VALUES) -> dict[str, Any]:
    """Results of up to 3 columns and 5 rows."""
    width = draw(st.integers(1, 3))
    rows = draw(st.lists(st.lists(of, min_size=width, max_size=width), max_size=5))
    return table(rows, columns=[f"c{number}" for number in range(width)])


@given(results(), st.sampled_from([SqlPolicy(), EXACT, LOOSE, SqlPolicy(decimals=1)]))
def test_comparing_is_reflexive(result: dict[str, Any], policy: SqlPolicy) -> None:
    """Every result equals itself under every policy, whatever it holds."""
    assert compare(result, result, policy=policy).correct


@given(results(), results(), st.sampled_from([SqlPolicy(), EXACT, LOOSE, SqlPolicy(decimals=0)]))
def test_comparing_is_symmetric(
    one: dict[str, Any], other: dict[str, Any], policy: SqlPolicy
) -> None:
    """Which of two results is the gold decides nothing."""
    there, back = compare(one, other, policy=policy), compare(other, one, policy=policy)
    assert (there.correct, there.rule) == (back.correct, back.rule)


@given(results(), results(), st.randoms(use_true_random=False))
def test_rows_of_a_bag_and_columns_may_be_permuted(
    one: dict[str, Any], other: dict[str, Any], chance: random.Random
) -> None:
    """No order of rows, and no permutation of whole columns, changes a verdict."""
    rows = [list(row) for row in other["rows"]]
    chance.shuffle(rows)
    places = list(range(len(other["columns"])))
    chance.shuffle(places)
    shuffled = table([[row[p] for p in places] for row in rows], columns=other["columns"])
    for policy in (SqlPolicy(), LOOSE):
        before = compare(one, other, policy=policy).correct
        assert compare(one, shuffled, policy=policy).correct == before


NUMBERS = st.integers(0, 3) | st.none() | st.sampled_from(["a", "b"])


@given(results(of=NUMBERS), results(of=NUMBERS))
def test_two_different_bags_never_match(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Tables match exactly if some permutation of the columns makes their bags of rows equal."""
    wide, rows = len(one["columns"]), [tuple(row) for row in other["rows"]]
    same = wide == len(other["columns"]) and any(
        sorted(map(repr, (tuple(row[p] for p in places) for row in one["rows"])))
        == sorted(map(repr, rows))
        for places in itertools.permutations(range(wide))
    )
    assert compare(one, other).correct == same


@given(results(of=NUMBERS), st.integers(0, 4), st.randoms(use_true_random=False))
def test_a_row_more_never_matches(
    result: dict[str, Any], place: int, chance: random.Random
) -> None:
    """Doubling or losing one row of a bag is a difference."""
    assume(result["rows"])
    rows = result["rows"]
    doubled = table([*rows, rows[place % len(rows)]])
    chance.shuffle(doubled["rows"])
    assert not compare(result, doubled).correct
    assert not compare(doubled, result).correct


@given(st.lists(st.sampled_from([1.0, 1.05, 1.1, 1.16, 1.22, 1.3]), min_size=1, max_size=5))
def test_tolerant_matching_is_a_matching(numbers: list[float]) -> None:
    """Chains of near numbers match exactly if some pairing of the rows has only near pairs."""
    others = [number * 1.06 for number in numbers[::-1]]
    for shift in (0.0, 0.05, 0.2):
        moved = [number + shift for number in others]
        paired = any(
            all(math.isclose(a, b, rel_tol=0.1) for a, b in zip(numbers, order, strict=True))
            for order in itertools.permutations(moved)
        )
        gold, given_ = table([[n] for n in numbers]), table([[n] for n in moved])
        assert compare(gold, given_, policy=LOOSE).correct == paired


def test_equal_values_are_not_paired_greedily() -> None:
    """1.0 stands on both sides, yet it must go to the two others, or they find no partner."""
    gold, given_ = table([[1.0001], [1.09]]), table([[1.0001], [0.92]])
    assert compare(gold, given_, policy=LOOSE).correct


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (None, 0, False),
        (None, "", False),
        (None, {"float": "nan"}, False),
        (1, 1.0, True),
        (1, {"decimal": "1.00"}, True),
        (True, 1, True),
        (1, "1", False),
        ("00420", 420, False),
        (0.3, 0.1 + 0.2, True),
        (0.3, {"decimal": "0.3"}, True),
        (0.004, 0.009, False),
        (1e-12, 2e-12, False),
        (0.0, 1e-300, False),
        (-0.0, 0, True),
        (10_000_001, 10_000_002, False),
        (10_000_001.0, 10_000_002.0, False),
        (2**53, 2**53 + 1, False),
        ({"decimal": "1234567890.12"}, {"decimal": "1234567890.13"}, False),
        ({"decimal": "0.33333333333333333333"}, {"decimal": "0.3333333333333333"}, True),
        ({"float": "nan"}, {"float": "nan"}, True),
        ({"float": "inf"}, {"float": "-inf"}, False),
        ({"float": "inf"}, 1e308, False),
        (10**400, 1.5, False),
        ({"decimal": "1E+999999"}, {"decimal": "1E+999999"}, True),
        ("a", "A", False),
        ("a", "a ", False),
        ("a", {"bytes": "61"}, False),
        ({"date": "2020-01-01"}, {"datetime": "2020-01-01T00:00:00+00:00"}, True),
        ({"date": "2020-01-01"}, {"datetime": "2020-01-01T01:00:00"}, False),
        ({"datetime": "2020-01-01T01:00:00+01:00"}, {"date": "2020-01-01"}, True),
        ({"date": "2020-01-01"}, "2020-01-01", False),
        ({"date": "infinity"}, {"date": "infinity"}, True),
        ({"uuid": "AB"}, {"uuid": "ab"}, True),
        ({"interval": 60}, 60, False),
        ({"array": [1, 2]}, {"array": [1.0, 2]}, True),
        ({"json": {"a": 1, "b": 2}}, {"json": {"b": 2, "a": 1}}, True),
        ({"json": 1}, 1, False),
    ],
)
def test_values_by_type(left: Any, right: Any, same: bool) -> None:
    """The table of ``SqlPolicy``: what equals what without any setting, either way round."""
    assert compare(table([[left]]), table([[right]])).correct is same
    assert compare(table([[right]]), table([[left]])).correct is same


@pytest.mark.parametrize(
    ("left", "right", "policy"),
    [
        (1, "1", {"text_numbers": True}),
        ({"date": "2020-01-01"}, "2020-01-01", {"text_dates": True}),
        ({"datetime": "2020-01-01T10:00:00"}, "2020-01-01 10:00", {"text_dates": True}),
        (50 / 3, 16.67, {"decimals": 2}),
        (0.125, 0.13, {"decimals": 2}),
        (0.125, 0.12, {"decimals": 2}),
        (16.6, 17, {"decimals": 0}),
        (100.0, 104.0, {"rel_tol": 0.05, "bool_numbers": False}),
    ],
)
def test_a_task_may_declare_more_to_be_equal(left: Any, right: Any, policy: dict[str, Any]) -> None:
    """What differs by default is equal where the task says so, either way round."""
    loose = SqlPolicy(**policy)
    if "rel_tol" not in policy:
        assert not compare(table([[left]]), table([[right]])).correct
        assert compare(table([[left]]), table([[right]]), policy=loose).correct
        assert compare(table([[right]]), table([[left]]), policy=loose).correct


@pytest.mark.parametrize(
    ("left", "right", "policy"),
    [
        ("00420", 420, {"text_numbers": True}),
        ("1 ", 1, {"text_numbers": True}),
        (0.004, 0.009, {"decimals": 2}),
        (50 / 3, 16.66, {"decimals": 2}),
        (3, 4, {"decimals": 0}),
        (True, 1, {"bool_numbers": False}),
        (100.0, 106.0, {"rel_tol": 0.05}),
        ("20200101", {"date": "2020-01-01"}, {"text_dates": True}),
    ],
)
def test_a_declared_leniency_has_its_limits(left: Any, right: Any, policy: dict[str, Any]) -> None:
    """Codes with leading zeros stay texts, truncating is no rounding, whole numbers stay exact."""
    assert not compare(table([[left]]), table([[right]]), policy=SqlPolicy(**policy)).correct


def test_one_permutation_holds_for_the_whole_table() -> None:
    """Columns that hold the same values each are not enough: rows must stay together."""
    gold = table([["x", 1], ["y", 2]])
    assert compare(gold, table([[1, "x"], [2, "y"]])).correct
    assert compare(gold, table([["x", 2], ["y", 1]])).rule == "rows"
    swapped = compare(table([[1, 2], [2, 1]]), table([[1, 2], [1, 2]]))
    assert not swapped.correct


def test_columns_by_policy() -> None:
    """``exact`` wants the gold's order; ``subset`` bears a few more columns, never all of them."""
    gold, turned = table([["x", 1]]), table([[1, "x"]])
    assert not compare(gold, turned, policy=SqlPolicy(columns="exact")).correct
    wide = table([[1, "x", None]])
    assert compare(gold, wide).rule == "column_count"
    subset = SqlPolicy(columns="subset")
    assert compare(gold, wide, policy=subset).correct
    assert compare(wide, gold, policy=subset).rule == "column_count"
    everything = table([[1, "x", *range(9)]])
    assert compare(gold, everything, policy=subset).rule == "column_count"


def test_names_of_columns_never_count() -> None:
    """Equal names, even doubled ones, neither help nor disturb."""
    gold = table([[1, 2], [3, 4]], columns=["id", "id"])
    assert compare(gold, table([[2, 1], [4, 3]], columns=["a", "b"])).correct


def test_results_without_rows_or_columns() -> None:
    """As results they are what they are: as many columns, as many rows."""
    empty = table([], columns=["a"])
    assert compare(empty, table([], columns=["b"])).correct
    assert compare(empty, table([], columns=["b", "c"])).rule == "column_count"
    blank = {"columns": [], "rows": [[], []], "cut": False}
    assert compare(blank, blank).correct
    assert compare(blank, {"columns": [], "rows": [[]], "cut": False}).rule == "row_count"


@pytest.mark.parametrize(
    ("gold", "given_", "rule"),
    [
        (table([], columns=["a"]), table([[1]]), "gold_empty"),
        (table([], columns=["a"]), table([], columns=["b"]), "both_empty"),
        (table([], columns=["a"]), failed(), "gold_empty"),
        ({"columns": [], "rows": [[]], "cut": False}, table([[1]]), "gold_no_columns"),
        (failed("timeout"), table([[1]]), "gold_timeout"),
        ({**table([[1]]), "cut": True}, table([[1]]), "gold_cut"),
    ],
)
def test_a_gold_that_says_nothing_is_not_gradable(
    gold: dict[str, Any], given_: dict[str, Any], rule: str
) -> None:
    """Whatever is submitted, it is neither right nor graded: the verdict says why."""
    verdict = grade("SELECT a FROM t", Trial(gold=gold, submitted=given_))
    assert (verdict.correct, verdict.gradable, verdict.rule) == (False, False, rule)


@pytest.mark.parametrize(
    ("given_", "reason", "rule"),
    [
        (failed(), "failed", "raised"),
        (failed("timeout"), "failed", "timeout"),
        ({**table([[1]]), "cut": True}, "different", "cut"),
    ],
)
def test_a_submission_without_a_result_is_wrong(
    given_: dict[str, Any], reason: str, rule: str
) -> None:
    """It is graded as wrong, with the kind of its error."""
    verdict = grade("SELECT 1", Trial(gold=table([[1]]), submitted=given_))
    assert (verdict.correct, verdict.gradable) == (False, True)
    assert (verdict.reason, verdict.rule) == (reason, rule)


@pytest.mark.parametrize("data", [{}, {"columns": ["a"]}, {"columns": ["a"], "rows": [[1, 2]]}])
def test_what_is_no_result_is_refused(data: dict[str, Any]) -> None:
    """A caller's mistake is an error, not a verdict."""
    with pytest.raises(UsageError):
        compare(table([[1]]), data)


def test_wide_tables_of_equal_columns_are_quick() -> None:
    """Many twin columns, alike in all but one row, do not make the search explode."""
    gold = [[0] * 40 for _ in range(50)]
    given_ = [list(row) for row in gold]
    gold[0][39] = gold[1][0] = 1
    given_[0][3] = given_[1][7] = 1
    assert compare(table(gold), table(given_)).correct
    given_[1][7], given_[1][3] = 0, 1
    assert not compare(table(gold), table(given_)).correct


def test_a_hostile_table_is_undecided_not_slow() -> None:
    """Columns that all look alike but fit in no way end in a verdict, within the steps allowed."""
    chance = random.Random(5)
    rows = [[chance.randint(0, 1) for _ in range(24)] for _ in range(24)]
    turned = [list(row) for row in zip(*rows, strict=True)]
    verdict = compare(table(rows), table(turned))
    assert not verdict.correct
    many = table([[1.0 + number * 1e-10] for number in range(4000)])
    others = table([[1.0 + number * 1e-10 + 3e-7] for number in range(4000)])
    slow = compare(many, others, policy=SqlPolicy(rel_tol=1e-6))
    assert slow.correct or slow.reason == "undecided"


def test_a_value_nested_without_end_is_undecided() -> None:
    """JSON in a cell may be as deep as the agent likes."""
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    result = table([[{"json": deep}]])
    assert compare(result, result).reason == "undecided"


def test_large_results_are_compared() -> None:
    """Ten thousand rows of floats that were summed another way, and shuffled."""
    chance = random.Random(1)
    rows = [(number, chance.random() * 1000, f"n{number % 7}") for number in range(10_000)]
    others: list[list[Any]] = [[name, v * (1 + 1e-15), number] for number, v, name in rows]
    chance.shuffle(others)
    assert compare(table(rows), table(others)).correct
    others[0] = [others[0][0], rows[0][1] + 1000, others[0][2]]
    assert not compare(table(rows), table(others)).correct


def test_order_counts_only_where_the_gold_orders() -> None:
    """The outermost ORDER BY decides, unless the policy does."""
    run = memory(EMP)
    names, back = "SELECT name FROM emp ORDER BY name DESC", "SELECT name FROM emp ORDER BY id"
    assert judge(run, names, back).rule == "order"
    assert judge(run, names, back, order="never").correct
    assert judge(run, back.replace(" ORDER BY id", ""), names).correct
    assert not judge(run, "SELECT name FROM emp", names, order="always").correct
    inner = "SELECT name FROM (SELECT name FROM emp ORDER BY name DESC)"
    assert judge(run, inner, back).correct


def test_rows_that_tie_may_stand_in_any_order() -> None:
    """Bob and Cid are paid alike; Ann is not."""
    run = memory(EMP)
    gold = "SELECT name FROM emp ORDER BY pay DESC"
    assert judge(run, gold, "SELECT name FROM emp ORDER BY pay DESC, id DESC").correct
    assert judge(run, gold, "SELECT name FROM emp ORDER BY pay DESC, id").correct
    assert judge(run, gold, "SELECT name FROM emp ORDER BY id").rule == "order"
    shown = "SELECT name, pay FROM emp ORDER BY pay DESC"
    assert judge(run, shown, "SELECT pay, name FROM emp ORDER BY pay DESC, id DESC").correct


def test_unknown_keys_leave_the_order_as_it_is() -> None:
    """Without its probe an order by what is not shown is taken row by row."""
    gold = "SELECT name FROM emp ORDER BY pay DESC"
    trial = Trial(gold=table([["Bob"], ["Cid"]]), submitted=table([["Cid"], ["Bob"]]))
    assert grade(gold, trial).rule == "order"
    wrong = Trial(gold=trial.gold, submitted=trial.submitted, probe=table([["Zoe", 1.0]]))
    assert grade(gold, wrong).rule == "order"
    broken = Trial(gold=trial.gold, submitted=trial.submitted, probe=failed())
    assert grade(gold, broken).rule == "order"


def test_a_tie_at_the_limit_leaves_a_choice() -> None:
    """Any of the rows that tie is right, as many as the gold takes, and the verdict says so."""
    run = memory(EMP)
    gold = "SELECT name FROM emp ORDER BY pay DESC LIMIT 1"
    for name in ("Bob", "Cid"):
        verdict = judge(run, gold, f"SELECT '{name}'")
        assert (verdict.correct, verdict.rule) == (True, "limit_tie")
    assert not judge(run, gold, "SELECT 'Ann'").correct
    both = "SELECT name FROM emp WHERE pay = 20"
    assert judge(run, gold, both).rule == "row_count"
    assert judge(run, gold, both, ties="all").rule == "limit_all_tied"
    assert not judge(run, gold, "SELECT name FROM emp", ties="all").correct


def test_a_limit_without_an_order_takes_any_rows() -> None:
    """Two of the three names, but not one twice and none that is not there."""
    run = memory(EMP)
    gold = "SELECT name FROM emp LIMIT 2"
    assert judge(run, gold, "SELECT name FROM emp WHERE id > 1").rule == "limit_tie"
    assert not judge(run, gold, "SELECT 'Ann' UNION ALL SELECT 'Ann'").correct
    assert not judge(run, gold, "SELECT 'Ann' UNION ALL SELECT 'Zoe'").correct


def test_an_offset_can_tie_at_both_ends() -> None:
    """The second best paid may be either of the two that tie."""
    run = memory(EMP)
    gold = "SELECT name FROM emp ORDER BY pay DESC LIMIT 1 OFFSET 1"
    assert judge(run, gold, "SELECT 'Bob'").correct
    assert judge(run, gold, "SELECT 'Cid'").correct
    assert not judge(run, gold, "SELECT 'Ann'").correct
    last = "SELECT name FROM emp ORDER BY pay DESC LIMIT 5 OFFSET 2"
    assert judge(run, last, "SELECT 'Ann'").correct


def test_a_probe_that_was_cut_among_ties_decides_nothing() -> None:
    """More rows may tie than were kept: not gradable, rather than a guess."""
    probe = {**table([["Bob", 20.0], ["Cid", 20.0]]), "cut": True}
    trial = Trial(gold=table([["Bob"]]), submitted=table([["Dan"]]), probe=probe)
    verdict = grade("SELECT name FROM emp ORDER BY pay LIMIT 1", trial)
    assert (verdict.gradable, verdict.rule) == (False, "limit_tie_unknown")


def test_right_only_if_right_on_every_database() -> None:
    """A query that is right by chance on one database is found out on the next."""
    gold, one, two = "SELECT count(*) FROM t", table([[3]]), table([[4]])
    right = [Trial(gold=one, submitted=one), Trial(gold=two, submitted=two)]
    assert grade_instances(gold, right).correct
    chance = [Trial(gold=one, submitted=one), Trial(gold=two, submitted=one)]
    assert grade_instances(gold, chance).rule == "rows@1"
    broken = [Trial(gold=one, submitted=one), Trial(gold=failed(), submitted=one)]
    assert not grade_instances(gold, broken).gradable
    assert not grade_instances(gold, []).gradable


def test_a_further_database_may_be_empty_the_first_may_not() -> None:
    """That a query returns nothing on a neighbour database is a result."""
    empty, one = table([], columns=["a"]), table([[1]])
    gold = "SELECT a FROM t"
    pair = [Trial(gold=one, submitted=one), Trial(gold=empty, submitted=empty)]
    assert grade_instances(gold, pair).correct
    assert not grade_instances(gold, pair[::-1]).gradable
    wrong = [Trial(gold=one, submitted=one), Trial(gold=empty, submitted=one)]
    assert grade_instances(gold, wrong).rule == "row_count@1"


def test_one_of_several_golds_must_be_met_throughout() -> None:
    """Not one gold here and another there; a gold that fails does not spoil the others."""
    one, two = table([[1]]), table([[2]])
    golds = {
        "SELECT 1": [Trial(gold=one, submitted=one), Trial(gold=one, submitted=two)],
        "SELECT 2": [Trial(gold=two, submitted=one), Trial(gold=two, submitted=two)],
    }
    assert not grade_alternatives(golds).correct
    golds["SELECT a"] = [Trial(gold=failed(), submitted=one)]
    assert grade_alternatives(golds).gradable
    golds["SELECT b"] = [Trial(gold=one, submitted=one)]
    assert grade_alternatives(golds).correct
    assert not grade_alternatives({}).gradable


def state(**tables: list[list[Any]]) -> dict[str, Any]:
    """What ``sql_after`` tells of these tables."""
    return {
        "tables": [{"name": name, **table(rows, columns=["a"])} for name, rows in tables.items()]
    }


def test_a_state_is_all_tables_as_bags() -> None:
    """Rows may lie in any order; every table counts, also those that the gold left alone."""
    before, gold = state(t=[[1], [2]], u=[[1]]), state(t=[[1], [3]], u=[[1]])
    assert grade_state(before, gold, state(t=[[3], [1]], u=[[1]])).correct
    assert grade_state(before, gold, before).rule == "rows@t"
    assert grade_state(before, gold, state(t=[[1], [3]], u=[])).rule == "row_count@u"
    assert grade_state(before, gold, state(t=[[1], [3]])).rule == "tables"
    renamed = state(t=[[1], [3]], u=[[1]])
    renamed["tables"][0]["columns"] = ["b"]
    assert grade_state(before, gold, renamed).rule == "columns@t"


def test_a_gold_that_changes_nothing_is_not_gradable() -> None:
    """Else doing nothing would pay; nor is a gold that fails."""
    before = state(t=[[1]])
    assert grade_state(before, before, before).rule == "gold_unchanged"
    stopped = {**state(t=[[2]]), "stopped": {"kind": "raised", "message": "no such table"}}
    assert not grade_state(before, stopped, before).gradable
    assert not grade_state(before, failed("timeout"), before).gradable
    gold = state(t=[[2]])
    assert grade_state(before, gold, stopped).reason == "failed"
    assert grade_state(before, gold, failed()).reason == "failed"


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"ordr": "auto"}, UnknownNameError),
        ({"order": "sometimes"}, UsageError),
        ({"rel_tol": 0.5}, UsageError),
        ({"rel_tol": -1e-9}, UsageError),
        ({"decimals": 16}, UsageError),
        ({"extra_columns": -1}, UsageError),
        ({"alternatives": "SELECT 1"}, UsageError),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], error: type[Exception]) -> None:
    """A setting that is not known, or out of range, is named."""
    with pytest.raises(error):
        read_policy(settings)


def test_settings_are_read() -> None:
    """Lists become tuples, as JSON has no others."""
    assert read_policy({"alternatives": ["SELECT 1"]}).alternatives == ("SELECT 1",)
    assert read_policy({}) == SqlPolicy()
    assert read_outline("SELECT 1").probe == ""
