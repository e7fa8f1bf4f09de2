"""The jsonl source: reading, every complaint about a row, and rows that cannot be graded."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs import sources
from toolenvs.errors import DataError, UsageError
from toolenvs.protocols import TaskSource
from toolenvs.sources.jsonl import Jsonl
from toolenvs.tasks import load_tasks
from toolenvs.types import Task

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write rows (objects or raw text) as the lines of a file."""

    def write_rows(*rows: Any, name: str = "rows.jsonl") -> Path:
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
        return path

    return write_rows


def row(**fields: Any) -> dict[str, Any]:
    """A row that is fine, with other fields."""
    return {"prompt": "How much is 1 + 1?", "answer": "2", **fields}


def test_a_row_becomes_a_task_with_all_its_fields(write: Write) -> None:
    """Every field of the layout arrives, and other fields join ``data``."""
    call = {"name": "python", "arguments": {"code": "print(2)"}}
    path = write(
        row(
            id="one",
            files={"a/b.txt": "text"},
            grading={"rel_tol": 0.1},
            gold_calls=[call],
            data={"level": 3},
            topic="sums",
        )
    )
    source = sources.make("jsonl", location=str(path))
    task = source[0]
    assert (task.id, task.prompt, task.answer) == ("one", "How much is 1 + 1?", "2")
    assert task.files == {"a/b.txt": "text"}
    assert task.grading == {"rel_tol": 0.1}
    assert task.gold_calls == (call,)
    assert task.data == {"level": 3, "topic": "sums"}
    assert isinstance(source, TaskSource)


def test_a_row_may_have_a_moment(write: Write) -> None:
    """``now`` is the task's, not data; one that is none is refused with its place."""
    task = Jsonl(write(row(now="2024-06-15T12:00:00Z"), row(now=None)))[0]
    assert (task.now, task.data) == ("2024-06-15T12:00:00Z", {})
    for bad, message in (("soon", "now is 'soon'; it is a date"), (3, "field 'now' is a number")):
        with pytest.raises(DataError, match=rf"\.jsonl:1: .*{message}"):
            Jsonl(write(row(now=bad)))[0]


def test_rows_without_id_are_named_after_file_and_row(write: Write) -> None:
    """Ids count rows from 0, blank lines not counted; ``null`` is no id."""
    path = write(row(), "", "  \t", row(id=None), row(id=7), name="my_set.v2.jsonl")
    source = Jsonl(path)
    assert list(source.ids) == ["my_set-0", "my_set-1", "7"]
    assert [source[i].id for i in range(3)] == list(source.ids)


def test_lines_end_at_newlines_only(write: Write) -> None:
    """U+2028, U+0085, form feeds and carriage returns inside a string do not end a line."""
    prompt = "a\u2028b\u2029c\x85d\x0be\x0cf"
    path = write(json.dumps(row(prompt=prompt), ensure_ascii=False) + "\r", row())
    source = Jsonl(path)
    assert len(source) == 2
    assert source[0].prompt == prompt


def test_a_byte_order_mark_is_skipped_and_the_last_newline_is_optional(tmp_path: Path) -> None:
    """Files from other systems load, and random access finds their first row."""
    path = tmp_path / "bom.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row()).encode() + b"\r\n" + b'{"prompt": "p",')
    with pytest.raises(DataError, match=r"bom\.jsonl:2: the line is not valid JSON"):
        Jsonl(path)
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row()).encode())
    assert Jsonl(path)[0].prompt == "How much is 1 + 1?"


@pytest.mark.parametrize(
    ("answer", "text"),
    [(2, "2"), (2.5, "2.5"), (1e-7, "0.0000001"), (10**30, "1" + "0" * 30), ("  2 ", "  2 ")],
)
def test_number_answers_become_plain_digits(write: Write, answer: object, text: str) -> None:
    """A JSON number is an answer too, exactly and without an exponent."""
    assert Jsonl(write(row(answer=answer)))[0].answer == text


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            {"question": "q", "answer": "1", "level": 2},
            "field 'prompt' is missing; each row needs prompt, answer. "
            "This row has question, answer, level.",
        ),
        (
            {"prompt": "p"},
            "field 'answer' is missing; each row needs prompt, answer. This row has prompt.",
        ),
        (
            {},
            "field 'prompt' is missing; each row needs prompt, answer. This row has no fields.",
        ),
        (row(prompt=["p"]), "field 'prompt' is a list; it must be a text."),
        (row(answer=None), "field 'answer' is null; it must be a text or a number."),
        (row(answer=True), "field 'answer' is true or false; it must be a text or a number."),
        (row(answer=["2"]), "field 'answer' is a list; it must be a text or a number."),
        (row(id=" "), "field 'id' is empty; give the row an id or leave it out."),
        (row(files=["x"]), "field 'files' is a list; it must be an object."),
        (
            row(files={"../x": "t"}),
            "files cannot hold '../x'; a file's name is relative and stays inside the working "
            "folder.",
        ),
        (
            row(files={"/etc/x": "t"}),
            "files cannot hold '/etc/x'; a file's name is relative and stays inside the working "
            "folder.",
        ),
        (row(files={"x": 1}), "file 'x' is a number; it must be a text."),
        (row(grading="exact"), "field 'grading' is a text; it must be an object."),
        (
            row(grading={"rel_tl": 0.1}),
            "grading has no setting 'rel_tl'. Did you mean 'rel_tol'? Known: "
            "allow_missing_unit, kind, ordered, percent, rel_tol.",
        ),
        (row(gold_calls={"name": "x"}), "field 'gold_calls' is an object; it must be a list."),
        (
            row(gold_calls=[{"name": "python"}]),
            "gold_calls[0] must be an object with a text 'name' and an object 'arguments'.",
        ),
        ("[1, 2]", "the line holds a list; it must be a JSON object."),
        ('"text"', "the line holds a text; it must be a JSON object."),
    ],
)
def test_a_broken_row_is_named_with_its_place(write: Write, bad: Any, message: str) -> None:
    """The message holds file, line, what is wrong, what is there and what is needed."""
    path = write(row(), "", bad)
    with pytest.raises(DataError) as caught:
        Jsonl(path)
    assert str(caught.value) == f"{path}:3: {message}"


@pytest.mark.parametrize(
    "text", ["{", '{"a": 1', "nonsense", '{"a": NaN}', '{"a": "\\ud800"}', '{"a":' + "[" * 5000]
)
def test_a_line_that_is_no_json_is_an_error_with_its_place(write: Write, text: str) -> None:
    """A cut or malformed line is never skipped."""
    path = write(row(), text)
    with pytest.raises(DataError) as caught:
        Jsonl(path)
    assert str(caught.value).startswith(f"{path}:2: the line is not valid JSON (")


def test_a_grading_value_that_the_grader_refuses_is_an_error(write: Write) -> None:
    """A setting of the wrong type or choice is found at load, not at the first answer."""
    path = write(row(grading={"percent": "sometimes"}))
    with pytest.raises(DataError, match=r"rows\.jsonl:1: grading cannot be .*percent"):
        Jsonl(path)


def test_two_rows_cannot_share_an_id(write: Write) -> None:
    """The message names both lines."""
    path = write(row(id="a"), row(id="b"), row(id="a"))
    with pytest.raises(DataError) as caught:
        Jsonl(path)
    assert str(caught.value) == (
        f"{path}:3: id 'a' is already that of line 1; each row needs an id of its own."
    )


def test_m08_rows_that_cannot_be_graded_are_reported_and_left_out(write: Write) -> None:
    """M08: such a row is named as path:line and no task, so it can never pay."""
    path = write(
        row(),
        row(answer="all primes that are 1 mod 4, listed with their squares"),
        row(answer="  "),
        row(prompt=" "),
        row(answer="3"),
    )
    source = Jsonl(path)
    assert len(source) == 2
    assert list(source.ids) == ["rows-0", "rows-4"]
    assert [source[i].answer for i in range(2)] == ["2", "3"]
    assert list(source.rejected) == [
        f"{path}:2: the gold answer 'all primes that are 1 mod 4, listed with their squares' is "
        "not gradable",
        f"{path}:3: the gold answer is empty",
        f"{path}:4: the prompt is empty",
    ]


def test_a_file_without_a_usable_row_is_an_error(write: Write) -> None:
    """An empty set of tasks is never handed on; the first reason is named."""
    with pytest.raises(DataError, match=r"no row of the file is usable\.$"):
        Jsonl(write("", ""))
    path = write(row(answer=""))
    with pytest.raises(DataError) as caught:
        Jsonl(path)
    assert str(caught.value) == (
        f"{path}: no row of the file is usable. The first of 1: {path}:1: the gold answer is empty"
    )


def test_another_family_is_not_graded_as_mathematics(write: Write) -> None:
    """Only the prompt and the answer must be there; the family's own source checks the rest."""
    source = Jsonl(write(row(answer="SELECT 1 WHERE ???")), family="search")
    assert source[0].family == "search"
    assert not source.rejected


def test_a_missing_file_names_the_nearest(write: Write, tmp_path: Path) -> None:
    """A slip of the pen is corrected; a folder lists what it holds."""
    path = write(row(), name="gsm8k_test.jsonl")
    wrong = tmp_path / "gsm8k_tset.jsonl"
    with pytest.raises(DataError) as caught:
        Jsonl(wrong)
    assert str(caught.value) == f"{wrong}: there is no such file. Did you mean {path}?"
    with pytest.raises(DataError) as caught:
        Jsonl(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: this is a folder; name a file in it: gsm8k_test.jsonl."
    )
    with pytest.raises(DataError, match=r"holds gsm8k_test\.jsonl\.$"):
        Jsonl(tmp_path / "zzz")
    with pytest.raises(DataError, match="The nearest folder that exists is "):
        Jsonl(tmp_path / "no" / "such" / "file.jsonl")
    with pytest.raises(UsageError, match="source 'jsonl' needs a path: write jsonl:PATH"):
        Jsonl("")


def test_indices_behave_as_a_sequence(write: Write) -> None:
    """Iteration ends; negative indices count from the end; others raise IndexError."""
    source = Jsonl(write(row(id="a"), row(id="b")))
    sequence: Any = source
    assert [task.id for task in sequence] == ["a", "b"]
    assert source[-1].id == "b"
    with pytest.raises(IndexError):
        source[2]


def test_a_file_that_changed_is_noticed(write: Write) -> None:
    """A task is never made of another row than the one that was checked."""
    path = write(row(id="a"), row(id="b"))
    source = Jsonl(path)
    write(row(id="b"), row(id="a"))
    with pytest.raises(DataError, match=r":1: the file has changed since it was loaded"):
        source[0]
    path.write_text("")
    with pytest.raises(DataError, match=r":2: the file has changed since it was loaded"):
        source[1]
    path.unlink()
    with pytest.raises(DataError):
        source[0]


def test_a_source_can_be_pickled(write: Write) -> None:
    """Environments are sent to worker processes with their tasks."""
    source = Jsonl(write(row(id="a"), row(id="b")))
    copy = pickle.loads(pickle.dumps(source))
    assert copy[1] == source[1]


@given(
    prompts=st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5),
    blanks=st.lists(st.sampled_from(["", " ", "\t", "\r"]), max_size=5),
)
def test_any_prompt_comes_back_unchanged(
    prompts: list[str], blanks: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever characters a prompt holds, and wherever blank lines stand."""
    path = tmp_path_factory.mktemp("jsonl") / "rows.jsonl"
    lines = [json.dumps(row(prompt=prompt), ensure_ascii=False) for prompt in prompts]
    path.write_bytes("\n".join([*blanks, *lines, *blanks]).encode())
    source = Jsonl(path)
    assert [source[i].prompt for i in range(len(source))] == prompts


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("3.14159265358979323846", "3.14159265358979323846"),
        ("12345678901234567890.5", "12345678901234567890.5"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("2.50", "2.50"),
        ("1.5e3", "1500"),
        ("9" * 400, "9" * 400),
    ],
)
def test_a_number_is_the_answer_as_it_is_written(write: Write, number: str, text: str) -> None:
    """No digit that stands in the file is lost on the way through a float."""
    path = write(f'{{"prompt": "p", "answer": {number}, "level": 2, "share": 0.5, "deep": [1]}}')
    task = Jsonl(path)[0]
    assert task.answer == text
    assert task.data == {"level": 2, "share": 0.5, "deep": [1]}


@pytest.mark.parametrize("number", ["7" * 5000, "1e999999999", "1e-99999999999999999999"])
def test_a_huge_number_is_valid_json(write: Write, number: str) -> None:
    """It may be no answer that can be graded, but the line is not called broken."""
    path = write(row(), f'{{"prompt": "p", "answer": {number}, "big": {number}}}')
    source = Jsonl(path)
    assert len(source) + len(source.rejected) == 2
    assert Jsonl(path, family="search")[1].answer == number


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"prompt": "p", "answer": "1", "answer": "2"}', "the key 'answer' stands twice"),
        ('{"prompt": "p", "answer": "1", "data": {"a": 1, "a": 1}}', "the key 'a' stands twice"),
        ('{"prompt": "p", "answer": NaN}', "NaN is no JSON value"),
        ('{"prompt": "\\ud800", "answer": "1"}', "half of a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_ambiguous_rows_are_refused_with_their_place(write: Write, line: str, says: str) -> None:
    """Which of two values was meant is not guessed."""
    with pytest.raises(DataError, match=rf"rows\.jsonl:2: .*{says}"):
        Jsonl(write(row(), line))


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a": "x", "a/b": "y"}, "cannot hold both 'a' and 'a/b'"),
        ({"a/b/c": "x", "a/b": "y"}, "cannot hold both 'a/b' and 'a/b/c'"),
        ({"a": "x", "./a": "y"}, "they are one"),
        ({"n" * 256: "x"}, "longer than 255 bytes"),
        ({"é" * 128: "x"}, "longer than 255 bytes"),
        ({"/".join(["d" * 200] * 6): "x"}, "longer than 1000 bytes"),
        ({"folder/": "x"}, "names a folder"),
        ({"big": "x" * (16 << 20) + "x"}, "a sandbox's disk holds 16777216"),
        ({f"f{i}": "x" for i in range(5000)}, "a sandbox's disk holds 16777216"),
    ],
)
def test_files_that_no_sandbox_can_hold_are_refused(
    write: Write, files: dict[str, str], says: str
) -> None:
    """They would fail every episode of the task; also where a program made the task."""
    with pytest.raises(DataError, match=rf"rows\.jsonl:2: files .*{says}"):
        Jsonl(write(row(), row(files=files)))
    with pytest.raises(UsageError, match=says):
        load_tasks([Task(id="a", prompt="p", answer="1", files=files)], family="math_tir")


def test_a_prompt_that_no_observation_holds_is_reported_and_left_out(write: Write) -> None:
    """With its place and both lengths."""
    source = Jsonl(write(row(), row(prompt="x" * 1_000_001)))
    assert len(source) == 1
    assert source.rejected[0].endswith(
        "rows.jsonl:2: the prompt has 1000001 characters; an observation holds 1000000 at most"
    )


def test_what_is_no_file_is_called_by_its_name(write: Write, tmp_path: Path) -> None:
    """A path that is there is never answered by "no such file" or an error of the system."""
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    expected = {
        "loop.jsonl": "no file can be reached there: Too many levels of symbolic links",
        "dangling.jsonl": "this is a link to .*gone, which is not there",
        "pipe.jsonl": "this is a pipe, not a file",
        "folder.jsonl": "this is a folder; it holds no .jsonl file",
        "x" * 5000: "no file can be reached there: File name too long",
        "a\0b": "no file can be reached there: embedded null byte",
        "/dev/null": "this is a device, not a file",
    }
    for name, says in expected.items():
        with pytest.raises(DataError, match=says):
            Jsonl(tmp_path / name)
    with pytest.raises(DataError, match="no such folder of a user"):
        Jsonl("~no-such-user-here/rows.jsonl")
