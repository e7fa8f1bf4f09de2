"""Loading tasks by a spec, and dealing them: epochs, shards, groups, shares, splits, states."""

from __future__ import annotations

import json
import pickle
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.utils import seeding
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.errors import DataError, UnknownNameError, UsageError
from toolenvs.tasks import Draw, Mixture, TaskList, TaskSampler, load_tasks
from toolenvs.types import Task


def tasks(n: int, prefix: str = "t", family: str = "math_tir") -> list[Task]:
    """``n`` tasks whose ids count from 0."""
    return [
        Task(id=f"{prefix}{i}", prompt=f"What is {i}?", answer=str(i), family=family)
        for i in range(n)
    ]


def sampler(n: int = 3, **options: Any) -> TaskSampler:
    """A sampler over ``n`` tasks."""
    return TaskSampler(TaskList(tasks(n)), **options)


def rng(seed: int = 0) -> np.random.Generator:
    """An environment's generator, made as Gymnasium makes it."""
    return seeding.np_random(seed)[0]


def ids(draws: Sequence[Draw]) -> list[str]:
    """The task of each draw."""
    return [draw.task.id for draw in draws]


def seeded(dealer: TaskSampler, seed: int) -> Draw:
    """What an environment draws in ``reset(seed=seed)``."""
    return dealer.draw(rng(seed), seed=seed)


# --- G04: reset(seed) and what it draws ---------------------------------------------------------


def test_g04_the_same_seed_gives_the_same_task() -> None:
    """G04: twice in one sampler, and in another one, whatever was drawn between."""
    one, two = sampler(), sampler()
    first = seeded(one, 7)
    one.draw(rng(99))
    assert seeded(one, 7) == first == seeded(two, 7)


def test_g04_a_thousand_seeds_stay_inside_the_data() -> None:
    """G04: no seed indexes past the end, and each task comes about equally often."""
    one = sampler()
    counts = Counter(ids([seeded(one, seed) for seed in range(1000)]))
    assert set(counts) == {"t0", "t1", "t2"}
    assert all(250 < count < 420 for count in counts.values())


def test_g04_global_random_states_are_untouched() -> None:
    """G04: the draw uses the environment's own generator only."""
    random.seed(1)
    np.random.seed(1)
    expected = random.random(), np.random.random()
    random.seed(1)
    np.random.seed(1)
    one = sampler()
    seeded(one, 5)
    one.draw(rng(5))
    one.pick("t1", rng(5), seed=5)
    assert (random.random(), np.random.random()) == expected


def test_g04_a_fourth_reset_begins_the_next_epoch() -> None:
    """G04: three resets show all three tasks, a fourth one of them again; no IndexError."""
    one, generator = sampler(), rng(11)
    drawn = ids([one.draw(generator) for _ in range(4)])
    assert sorted(drawn[:3]) == ["t0", "t1", "t2"]
    assert drawn[3] in drawn[:3]


def test_g04_a_reset_without_seed_continues_the_own_stream() -> None:
    """G04: after a seeded reset the rest of its epoch follows, whatever generator is passed."""
    one, two = sampler(5), sampler(5)
    first = [seeded(one, 7), *(one.draw(rng(1)) for _ in range(4))]
    second = [seeded(two, 7), *(two.draw(rng(2)) for _ in range(4))]
    assert first == second
    assert sorted(ids(first)) == ["t0", "t1", "t2", "t3", "t4"]


def test_g04_without_any_seed_the_generator_decides() -> None:
    """G04: two environments whose generators are equal draw equally."""
    one, two = sampler(20), sampler(20)
    assert [one.draw(rng(3)) for _ in range(20)] == [two.draw(rng(3)) for _ in range(20)]
    assert ids([sampler(20).draw(rng(4))]) != ids([sampler(20).draw(rng(5))])


_PROCESS = """
import json, numpy
from tests.test_tasks import sampler, seeded
one = sampler(50)
draws = [seeded(one, 7), *(one.draw(None) for _ in range(60))]
print(json.dumps([[d.task.id, d.sandbox_seed] for d in draws]))
"""


@pytest.mark.parametrize("hash_seed", ["0", "5"])
def test_g04_the_same_seed_gives_the_same_task_in_any_process(hash_seed: str) -> None:
    """G04: a fresh process with another hash seed draws the same, task and sandbox seed."""
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", _PROCESS],
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    one, generator = sampler(50), rng()
    draws = [seeded(one, 7), *(one.draw(generator) for _ in range(60))]
    assert json.loads(done.stdout) == [[d.task.id, d.sandbox_seed] for d in draws]


@pytest.mark.parametrize("task_id", [2, np.int64(2), np.uint8(2), "t2", np.str_("t2")])
def test_g04_an_explicit_task_wins_over_the_seed(task_id: object) -> None:
    """G04: text is the id, an int (numpy's too) the row, whatever the seed."""
    one = sampler()
    picked = [one.pick(task_id, rng(seed), seed=seed) for seed in range(5)]
    assert ids(picked) == ["t2"] * 5
    assert one.pick(task_id).task.id == "t2"


def test_different_seeds_give_different_orders() -> None:
    """Two training runs with different seeds see their tasks in unlike orders."""
    one = sampler(50)

    def order(seed: int) -> list[str]:
        return ids([seeded(one, seed), *(one.draw(rng()) for _ in range(49))])

    assert order(0) != order(1)
    assert order(0)[1:] != order(1)[:-1]


# --- epochs, shards and groups ------------------------------------------------------------------


@given(
    n=st.integers(1, 12),
    world=st.integers(1, 5),
    group=st.integers(1, 4),
    epochs=st.integers(1, 3),
    seed=st.integers(0, 2**40),
)
def test_epochs_cover_every_task_once_over_all_ranks(
    n: int, world: int, group: int, epochs: int, seed: int
) -> None:
    """The shards together deal what one sampler deals: whole epochs without replacement.

    Shard i is reset with seed + i, as Gymnasium's vector environments do.
    """
    source = TaskList(tasks(n))
    alone = TaskSampler(source, group=group)
    total = n * group * epochs
    expected = [seeded(alone, seed), *(alone.draw(rng()) for _ in range(total - 1))]
    shards = [TaskSampler(source, group=group, rank=i, world=world) for i in range(world)]
    first = [seeded(shard, seed + i) for i, shard in enumerate(shards)]
    later = [shards[i % world].draw(rng()) for i in range(world, max(total, world))]
    assert [*first, *later][:total] == expected
    for epoch in range(epochs):
        part = expected[epoch * n * group : (epoch + 1) * n * group]
        assert Counter(ids(part)) == dict.fromkeys((t.id for t in tasks(n)), group)


@given(group=st.integers(1, 6), seed=st.integers(0, 1000))
def test_a_group_is_n_samples_of_one_task_with_one_sandbox_seed(group: int, seed: int) -> None:
    """Samples count from 0; the next group has another sandbox seed, even for the same task."""
    one = sampler(1, group=group)
    draws = [seeded(one, seed), *(one.draw(rng()) for _ in range(2 * group - 1))]
    first, second = draws[:group], draws[group:]
    assert [draw.sample for draw in first] == list(range(group))
    assert len({draw.sandbox_seed for draw in first}) == 1
    assert len({draw.sandbox_seed for draw in second}) == 1
    assert first[0].sandbox_seed != second[0].sandbox_seed
    assert all(0 <= draw.sandbox_seed < 2**32 for draw in draws)


def test_picked_tasks_with_equal_seeds_form_a_group() -> None:
    """Environments with equal seeds get one sandbox seed; other seeds or tasks another one."""
    one, two = sampler(), sampler()
    first = one.pick("t1", rng(7), seed=7, sample=3)
    assert first == two.pick(1, rng(7), seed=7, sample=3)
    assert first.sample == 3
    assert first.sandbox_seed != two.pick("t1", rng(8), seed=8).sandbox_seed
    assert first.sandbox_seed != two.pick("t2", rng(7), seed=7).sandbox_seed


def test_picking_does_not_advance_the_stream() -> None:
    """Between two draws any number of tasks may be picked."""
    one, two = sampler(9), sampler(9)
    first = [seeded(one, 1), one.draw(rng())]
    second = [seeded(two, 1)]
    two.pick("t8", rng())
    two.pick(0)
    assert [*second, two.draw(rng())] == first


def test_without_shuffling_the_order_is_the_source_s() -> None:
    """Evaluation goes through the file from the top, shards interleaved."""
    one = sampler(3, shuffle=False)
    assert ids([one.draw(rng()) for _ in range(4)]) == ["t0", "t1", "t2", "t0"]
    two = sampler(3, shuffle=False, rank=1, world=2)
    assert ids([two.draw(rng()) for _ in range(3)]) == ["t1", "t0", "t2"]


# --- explicit tasks -----------------------------------------------------------------------------


def test_an_unknown_task_names_the_nearest() -> None:
    """A slip of the pen is corrected; rows out of range and other types are refused."""
    one = sampler()
    with pytest.raises(UnknownNameError, match="'t22' is not the name of a task\\. Did you mean"):
        one.pick("t22")
    for row in (3, -1, np.int64(10)):
        with pytest.raises(UsageError, match="an int means the row, and 'tasks' has the rows 0 to"):
            one.pick(row)
    for wrong in (True, 1.0, None, ["t1"]):
        with pytest.raises(UsageError, match="must be a text"):
            one.pick(wrong)


def test_any_task_can_be_picked_whatever_the_split() -> None:
    """The whole source is open to an explicit choice."""
    one = sampler(50, split="[:10%]")
    assert [one.pick(f"t{i}").task.id for i in range(50)] == [f"t{i}" for i in range(50)]


# --- states -------------------------------------------------------------------------------------


@given(
    before=st.integers(0, 30),
    seed=st.integers(0, 2**70),
    group=st.integers(1, 3),
    weighted=st.booleans(),
    shard=st.integers(0, 2),
)
def test_a_restored_sampler_continues_identically(
    before: int, seed: int, group: int, weighted: bool, shard: int
) -> None:
    """State goes through JSON and into a fresh sampler; what follows is equal."""
    parts = [TaskList(tasks(5, "a")), TaskList(tasks(3, "b"))]
    source = Mixture(parts, [2, 1] if weighted else None)
    one, two = (TaskSampler(source, group=group, rank=shard, world=3) for _ in range(2))
    seeded(one, seed)
    for _ in range(before):
        one.draw(rng())
    two.restore(json.loads(json.dumps(one.state())))
    assert [two.draw(rng()) for _ in range(20)] == [one.draw(rng()) for _ in range(20)]
    assert two.state() == one.state()
    assert two.pick("b1") == one.pick("b1")


def test_a_state_from_before_the_first_draw_can_be_restored() -> None:
    """It says that no stream has begun."""
    one, two = sampler(), sampler()
    two.restore(json.loads(json.dumps(one.state())))
    assert two.draw(rng(4)) == one.draw(rng(4))


def test_a_state_of_other_tasks_or_settings_is_refused() -> None:
    """The message says what differs."""
    state = sampler(3).state()
    with pytest.raises(UsageError, match=r"it has tasks=\[3\], this sampler tasks=\[4\]"):
        sampler(4).restore(state)
    with pytest.raises(UsageError, match="group"):
        sampler(3, group=2).restore(state)
    with pytest.raises(UsageError, match="version"):
        sampler(3).restore({})
    with pytest.raises(UsageError, match="position='x'"):
        sampler(3).restore({**state, "position": "x"})


def test_a_sampler_can_be_pickled() -> None:
    """Environments are sent to other processes with their place in the stream."""
    one = sampler(9)
    seeded(one, 3)
    two = pickle.loads(pickle.dumps(one))
    assert [one.draw(rng()) for _ in range(12)] == [two.draw(rng()) for _ in range(12)]


# --- splits -------------------------------------------------------------------------------------


@given(cut=st.integers(20, 80), n=st.integers(60, 120), more=st.integers(0, 60))
def test_splits_are_disjoint_and_stable(cut: int, n: int, more: int) -> None:
    """Two sides of a cut share nothing and lose nothing; added tasks move no other one."""

    def side(size: int, split: str | tuple[float, float]) -> set[str]:
        one = sampler(size, split=split, shuffle=False)
        return set(ids([one.draw(rng()) for _ in range(len(one))]))

    left, right = side(n, f"[:{cut}%]"), side(n, (cut / 100, 1.0))
    assert not left & right
    assert left | right == {f"t{i}" for i in range(n)}
    assert left <= side(n + more, (0.0, cut / 100))
    assert right <= side(n + more, f"[{cut}%:]")


def test_a_split_has_about_its_share() -> None:
    """The hash spreads ids evenly."""
    assert 850 < len(sampler(1000, split="[:90%]")) < 950
    assert len(sampler(1000)) == len(sampler(1000, split=(0, 1))) == 1000


@pytest.mark.parametrize(
    "split", ["90%", "[90:]", "[:101%]", "[50%:50%]", (0.9, 0.1), (0.1,), (-1, 1), 3, (0, "x")]
)
def test_a_split_that_is_none_is_refused(split: Any) -> None:
    """The message shows the forms."""
    with pytest.raises(UsageError, match=r"must be '\[:90%\]'"):
        sampler(split=split)


def test_an_empty_split_is_refused() -> None:
    """The message says of how many tasks none is inside."""
    with pytest.raises(UsageError, match="holds none of the 1 tasks"):
        sampler(1, split="[:0.0001%]")


# --- shares of a mixture ------------------------------------------------------------------------


@given(weight=st.floats(0.05, 0.95), seed=st.integers(0, 1000), draws=st.integers(1, 300))
def test_parts_get_their_shares_and_have_epochs_of_their_own(
    weight: float, seed: int, draws: int
) -> None:
    """After any number of draws a part's count is near its share, and it never repeats early."""
    source = Mixture([TaskList(tasks(7, "a")), TaskList(tasks(4, "b"))], [weight, 1 - weight])
    one = TaskSampler(source)
    drawn = ids([seeded(one, seed), *(one.draw(rng()) for _ in range(draws - 1))])
    of_a = [task_id for task_id in drawn if task_id.startswith("a")]
    assert abs(len(of_a) - weight * draws) < 6
    for start in range(0, len(of_a), 7):
        epoch = of_a[start : start + 7]
        assert len(set(epoch)) == len(epoch)


def test_a_far_position_of_a_mixture_is_found_again() -> None:
    """Restoring a long stream counts its parts anew and comes to the same place."""
    source = Mixture([TaskList(tasks(7, "a")), TaskList(tasks(4, "b"))], [3, 1])
    one, two = TaskSampler(source), TaskSampler(source)
    seeded(one, 1)
    one.restore({**one.state(), "position": 1_500_000})
    two.restore({**one.state(), "position": 1_499_990})
    for _ in range(10):
        two.draw(rng())
    assert [one.draw(rng()) for _ in range(10)] == [two.draw(rng()) for _ in range(10)]


def test_without_weights_every_task_is_drawn_equally_often() -> None:
    """One epoch goes over all parts together."""
    one = TaskSampler(load_tasks([TaskList(tasks(7, "a")), TaskList(tasks(4, "b"))], family=TIR))
    drawn = ids([one.draw(rng()) for _ in range(11)])
    assert len(set(drawn)) == 11


def test_a_part_outside_the_split_is_named() -> None:
    """A weighted part without tasks could never get its share."""
    source = Mixture([TaskList(tasks(99, "a")), TaskList(tasks(1, "b"))], [1, 1])
    with pytest.raises(UsageError, match="holds none of the 1 tasks 99 to 99"):
        TaskSampler(source, split="[:1.5%]")


# --- specs --------------------------------------------------------------------------------------

TIR = "math_tir"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A file of two tasks with an awkward name."""
    path = tmp_path / "a+b c: d*2.jsonl"
    path.write_text(
        '{"id": "x", "prompt": "p", "answer": "1"}\n{"id": "y", "prompt": "q", "answer": "2"}\n'
    )
    return path


def test_a_spec_names_a_source_and_its_location(rows: Path) -> None:
    """Everything behind the first colon is the location."""
    assert load_tasks(f"jsonl:{rows}", family=TIR)[1].id == "y"
    assert len(load_tasks("generated:seed=1,n=7,kinds=words+digit_sum", family=TIR)) == 7
    assert len(load_tasks("generated", family=TIR)) == 100


@pytest.mark.parametrize("spec", ["", "builtin", "builtin:", "builtin:train"])
def test_nothing_means_the_family_s_own_tasks(spec: str) -> None:
    """Each of these is the built-in training set."""
    source = load_tasks(spec, family=TIR)
    assert source.name == "builtin"
    assert len(source) >= 20


def test_sums_of_specs_are_mixtures(rows: Path) -> None:
    """With weights and without; what follows a plus sign joins only if it reads NAME:."""
    plain = load_tasks(f"jsonl:{rows}+builtin:test+generated:n=3", family=TIR)
    assert isinstance(plain, Mixture)
    assert plain.weights is None
    assert plain.name == "jsonl+builtin+generated"
    assert len(plain) == 2 + 12 + 3
    assert [plain[i].id for i in (0, 1, 14)] == ["x", "y", "digit_sum-0-0"]
    shares = load_tasks(f"jsonl:{rows}*.75+generated:kinds=words+grid_paths*0.25", family=TIR)
    assert isinstance(shares, Mixture)
    assert shares.weights == (0.75, 0.25)
    with pytest.raises(UsageError, match="give every part a weight, or none"):
        load_tasks(f"jsonl:{rows}*0.5+builtin:", family=TIR)


def test_lists_of_specs_need_no_escaping(rows: Path) -> None:
    """Pairs carry weights; specs and sources mix."""
    pairs = load_tasks([(f"jsonl:{rows}", 3), (TaskList(tasks(2)), 1.0)], family=TIR)
    assert isinstance(pairs, Mixture)
    assert pairs.weights == (3.0, 1.0)
    assert len(load_tasks([f"jsonl:{rows}", "builtin"], family=TIR)) == 2 + 24
    awkward = rows.rename(rows.with_name("x+gsm8k:y*0.5"))
    assert len(load_tasks([f"jsonl:{awkward}"], family=TIR)) == 2
    with pytest.raises(UsageError, match="give every part a weight, or none"):
        load_tasks([("builtin", 1.0), "generated"], family=TIR)
    for weights in ([0, 1], [-1, 1], [float("nan"), 1], [float("inf"), 1]):
        with pytest.raises(UsageError, match="must hold one number above 0"):
            Mixture([TaskList(tasks(1, "a")), TaskList(tasks(1, "b"))], weights)
    with pytest.raises(UsageError, match="cannot be part of another"):
        load_tasks([pairs, "generated"], family=TIR)


def test_tasks_and_sources_of_one_s_own_are_taken() -> None:
    """A list of tasks is checked as a file is; a source is taken as it is."""
    ungradable = Task(id="bad", prompt="p", answer="all primes that are 1 mod 4, with squares")
    marked = Task(id="marked", prompt="p", answer="1", gradable=False)
    source = load_tasks([*tasks(2), ungradable, marked], family=TIR)
    assert len(source) == 2
    assert source.rejected[0].startswith("tasks[2]: 'bad': the gold answer 'all primes")
    assert source.rejected[1] == "tasks[3]: 'marked': the task is marked as not gradable"
    assert load_tasks(source, family=TIR) is source
    with pytest.raises(UsageError, match="none of the tasks is usable"):
        load_tasks([ungradable], family=TIR)
    with pytest.raises(UsageError, match="two tasks have the id 't0'"):
        load_tasks([*tasks(1), *tasks(1)], family=TIR)
    with pytest.raises(UsageError, match="two tasks have the id 't1'"):
        load_tasks([TaskList(tasks(2)), TaskList(tasks(3)[1:])], family=TIR)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (
            "gsm8:x",
            UnknownNameError,
            "'gsm8' is not the name of a task source. Did you mean 'gsm8k'",
        ),
        ("gsm8k", UsageError, "source 'gsm8k' needs a path: write gsm8k:PATH"),
        ("data/x.jsonl", UsageError, "names no source: write SOURCE:PATH, such as jsonl:data/x"),
        ("jsonl:no.jsonl", DataError, "no.jsonl: there is no such file"),
        ([], UsageError, "tasks=\\[\\] holds nothing: list at least one task"),
        (3, UsageError, "tasks=3 cannot be read"),
        (Path("x"), UsageError, "cannot be read: pass 'SOURCE:LOCATION'"),
    ],
)
def test_a_spec_that_cannot_be_read_says_what_is_allowed(
    spec: Any, error: type[Exception], message: str
) -> None:
    """Unknown sources, missing paths, other types."""
    with pytest.raises(error, match=message):
        load_tasks(spec, family=TIR)


def test_tasks_of_another_family_are_refused(rows: Path) -> None:
    """An environment never plays tasks that its tools and rewards do not fit."""
    with pytest.raises(UsageError, match="has tasks of the family 'math_tir'; this environment"):
        load_tasks("generated", family="sql")
    with pytest.raises(UsageError, match="of the family 'sql'; this environment is of the family"):
        load_tasks([*tasks(1), *tasks(1, "q", "sql")], family=TIR)
    assert load_tasks([f"jsonl:{rows}"], family="search")[0].family == "search"


def test_importing_tasks_stays_light() -> None:
    """No heavy library is loaded before a task is graded."""
    code = (
        "import sys, toolenvs.tasks; heavy = {'sympy', 'scipy', 'docker', 'sqlalchemy', 'httpx', "
        "'rich', 'latex2sympy2_extended', 'toolenvs.sources.generated'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "value"),
    [("group", value) for value in (0, -1, 2.5, "x", None, True, np.int64(0))]
    + [("world", 0), ("world", "2"), ("rank", -1), ("rank", 1), ("rank", 0.0)],
)
def test_a_setting_out_of_range_is_refused_when_the_sampler_is_made(name: str, value: Any) -> None:
    """The message names the setting and the value."""
    with pytest.raises(UsageError, match=re.escape(f"{name}={value!r}")):
        sampler(**{name: value})


def test_settings_may_be_numbers_of_numpy() -> None:
    """They deal as Python's do, and the state is JSON all the same."""
    mine = sampler(group=np.int64(2), rank=np.int32(1), world=np.uint8(2))
    plain = sampler(group=2, rank=1, world=2)
    dealt = [(made.draw(rng(), seed=3), made.draw(rng())) for made in (mine, plain)]
    assert dealt[0] == dealt[1]
    assert json.loads(json.dumps(mine.state())) == plain.state()
