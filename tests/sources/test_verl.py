"""The verl source: Parquet rows of several data sets, as tasks of three families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.sources.databases import make_database
from toolenvs.errors import DataError, UsageError
from toolenvs.sources.verl import Verl
from toolenvs.tasks import load_tasks

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

SKYRL = {
    "data": "spider",
    "db_id": "emp",
    "prompt": [
        {"role": "system", "content": "You are an expert."},
        {
            "role": "user",
            "content": "Task: translate to SQLite.\nDatabase: emp\nQuestion: Who is in Oslo?\n"
            "Use <think>..</think>, explore with <sql>..</sql>.",
        },
    ],
    "reward_spec": {"method": "rule", "ground_truth": 'SELECT name FROM emp WHERE city = "Oslo"'},
}


def write(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    """A Parquet file of rows."""
    path = tmp_path / "train.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    return path


def chat(text: str, truth: Any, **fields: Any) -> dict[str, Any]:
    """A row in verl's layout."""
    return {
        "data_source": "x",
        "prompt": [{"role": "user", "content": text}],
        "reward_model": {"style": "rule", "ground_truth": truth},
        **fields,
    }


def test_skyrl_rows_are_sql_tasks(tmp_path: Path) -> None:
    """The question alone is asked; the database is found below the root, by its data set."""
    make_database(tmp_path / "spider" / "database" / "emp" / "emp.sqlite")
    source = Verl(write(tmp_path, SKYRL), family="sql")
    task = source[0]
    assert task.id == "verl-train-0"
    assert task.prompt == "Write one query for the SQLite database 'emp'.\n\nWho is in Oslo?"
    assert task.answer == "SELECT name FROM emp WHERE city = 'Oslo'"
    assert task.database is not None
    assert task.database.place == "spider/emp/emp.sqlite"
    shown = {"spider": str(tmp_path / "spider" / "database")}
    assert source.resources == {"sandbox:sql": {"data": shown}}


def test_a_long_prompt_is_cut_to_its_question(tmp_path: Path) -> None:
    """As in OmniSQL's template: the schema before it and the instructions behind it are dropped."""
    text = (
        "Task Overview:\nYou are a data science expert.\n\nDatabase Schema:\nCREATE TABLE emp\n\n"
        "Question:\nOslo is a city.\nWho is there?\n\nInstructions:\n- Only output what is asked."
    )
    make_database(tmp_path / "spider" / "database" / "emp" / "emp.sqlite")
    row = {**SKYRL, "prompt": [{"role": "user", "content": text}]}
    task = Verl(write(tmp_path, row), family="sql")[0]
    assert task.prompt.endswith("\n\nOslo is a city.\nWho is there?")


def test_a_data_set_without_databases_is_named(tmp_path: Path) -> None:
    """The message says where they were looked for."""
    path = write(tmp_path, {**SKYRL, "data": "synsql"})
    with pytest.raises(DataError, match=r"train\.parquet\[0\]: .*SynSQL-2\.5M/databases"):
        Verl(f"{path},databases={tmp_path}", family="sql")
    with pytest.raises(UsageError, match="has no use"):
        Verl(f"{path},databases={tmp_path}")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (
            "Solve the following math problem step by step. The last line of your response should "
            "be of the form Answer: $Answer.\n\nWhat is 1 + 1?\n\nRemember to put your answer on "
            'its own line after "Answer:".',
            "What is 1 + 1?",
        ),
        (
            "What is 1 + 1? Let's think step by step and output the final answer after `####`.",
            "What is 1 + 1?",
        ),
        ("Consider this.\nQuestion: What is 1 + 1?", "Consider this.\nQuestion: What is 1 + 1?"),
    ],
)
def test_instructions_for_another_format_are_dropped(tmp_path: Path, text: str, asked: str) -> None:
    """Those of known data sets only; any other text is asked whole."""
    task = Verl(write(tmp_path, chat(text, "2")))[0]
    assert (task.prompt, task.answer, task.family) == (asked, "2", "math_tir")
    assert task.data == {"data_source": "x"}


def test_the_question_beside_the_chat_is_preferred(tmp_path: Path) -> None:
    """``extra_info`` has it as it was."""
    row = chat("Please answer: 1 + 1", "2", extra_info={"question": "How much is 1 + 1?"})
    assert Verl(write(tmp_path, row))[0].prompt == "How much is 1 + 1?"


def test_a_list_of_targets_has_aliases(tmp_path: Path) -> None:
    """Search-R1: each is right; the first is the answer."""
    row = chat("Answer the given question. Use tags. Question: Where?\n", {"target": ["A", "B"]})
    task = Verl(write(tmp_path, row), family="search")[0]
    assert (task.prompt, task.answer, task.grading) == ("Where?", "A", {"aliases": ["B"]})


def test_rows_without_a_truth_or_a_user_are_named(tmp_path: Path) -> None:
    """With their place."""
    with pytest.raises(DataError, match=r"\[0\]: reward_model\.ground_truth is null"):
        Verl(write(tmp_path, chat("q", None)))
    row = {**chat("q", "1"), "prompt": [{"role": "system", "content": "s"}]}
    with pytest.raises(DataError, match=r"\[0\]: field 'prompt' is a list; it must be a chat"):
        Verl(write(tmp_path, row))


@pytest.mark.shared
@pytest.mark.parametrize(
    ("location", "family", "usable", "rejected"),
    [
        ("skyrl_sql_spider.parquet,databases={sql}", "sql", 52, 8),
        ("dapo_math.parquet", "math_tir", 60, 0),
        ("verl_gsm8k_multiturn_w_tool.parquet", "math_tir", 60, 0),
        ("searchr1_multihop.parquet", "search", 69, 0),
    ],
)
def test_real_files_are_loaded(
    shared: Path, location: str, family: str, usable: int, rejected: int
) -> None:
    """The golds of SkyRL's rejected rows return nothing on the databases that are there."""
    spec = f"verl:{shared / 'data' / 'formats'}/{location}".format(sql=shared / "data" / "sql")
    source = load_tasks(spec, family=family)
    assert (len(source), len(source.rejected)) == (usable, rejected)
    assert all(text.endswith("the gold returns no rows") for text in source.rejected)
    for index in range(len(source)):
        prompt = source[index].prompt
        assert not any(mark in prompt for mark in ("<think>", "####", "step by step", "<answer>"))
