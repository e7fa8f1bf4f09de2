"""What the exceptions say and carry."""

from __future__ import annotations

import pickle

from toolenvs.errors import RuntimeFailure, UnknownNameError


def test_a_short_list_of_names_is_whole() -> None:
    """Sorted, with the nearest name first to be seen."""
    message = str(UnknownNameError("a reward", "lenght", ["length", "answer"]))
    assert message == (
        "'lenght' is not the name of a reward. Did you mean 'length'? Known: answer, length."
    )
    assert str(UnknownNameError("a reward", "x", [])).endswith("Known: none.")


def test_a_long_list_of_names_is_an_example() -> None:
    """A thousand task ids help nobody; the nearest one does."""
    message = str(UnknownNameError("a task", "task-99", [f"task-{n:04}" for n in range(1000)]))
    assert "Did you mean 'task-0" in message
    assert message.endswith(
        "Known: task-0000, task-0001, task-0002, task-0003, task-0004 and 995 more."
    )


def test_a_failure_survives_the_way_between_processes() -> None:
    """Kind, message and reason are those that were raised."""
    failure = pickle.loads(pickle.dumps(RuntimeFailure("model", "gone", reason="status 404")))
    assert (failure.kind, str(failure), failure.reason) == ("model", "gone", "status 404")
