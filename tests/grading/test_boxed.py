"""Taking the final answer out of a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.boxed import extract_boxed, extract_marked, extract_submitted

balanced = st.recursive(
    st.text(st.characters(exclude_characters="{}\\", codec="utf-8"), max_size=8),
    lambda inner: st.builds(lambda a, b, c: f"{a}{{{b}}}{c}", inner, inner, inner),
    max_leaves=12,
)


@given(content=balanced, before=balanced, after=balanced)
def test_a_box_gives_back_what_was_put_in(content: str, before: str, after: str) -> None:
    """The content of a box comes out whole, whatever balanced text is in it or around it."""
    assert extract_boxed(f"{before}\\boxed{{{content}}}{after}") == content.strip()


@given(text=st.lists(st.sampled_from(["\\", "\\boxed", "\\fbox", "{", "}", " ", "7"])).map("".join))
def test_any_text_has_a_box_or_none(text: str) -> None:
    """Extraction never raises, and what it returns stands in the text."""
    content = extract_boxed(text)
    assert content is None or content in text


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed{1} then \boxed{2", "1"),
        (r"\boxed{1 then \boxed{2}", "2"),
        (r"\boxed{1 + \boxed{2}}", r"1 + \boxed{2}"),
        (r"\boxed{\boxed{1}\boxed{2}}", r"\boxed{1}\boxed{2}"),
        (r"\boxed{ \boxed{ 7 } }", "7"),
        (r"\boxed 7", None),
        (r"\boxed {7}", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{}", ""),
        (r"I use \boxed. So \boxed{7}, in \boxed", "7"),
        (r"\\boxed{7}", "7"),
        ("no box", None),
    ],
)
def test_the_last_complete_outermost_box_counts(text: str, content: str | None) -> None:
    """Of several boxes the last complete one counts; a fragment inside a box never does."""
    assert extract_boxed(text) == content


@pytest.mark.parametrize(
    ("text", "marker", "found"),
    [
        ("6 * 3 = 18\n#### 18", "####", "18"),
        ("#### 1\nno\n#### 1,234 \nend", "####", "1,234"),
        ("A: 5\nso\nA: 18", "A:", "18"),
        ("A:", "A:", ""),
        ("nothing", "####", None),
        ("text", "", None),
    ],
)
def test_the_last_marker_counts(text: str, marker: str, found: str | None) -> None:
    """What follows the last marker on its line is the answer."""
    assert extract_marked(text, marker) == found


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("7", ("7",)),
        (r"\boxed{7}", ("7",)),
        (r"$$\boxed{7}.$$", ("7",)),
        (r"\boxed{$\boxed{7}$}", ("7",)),
        (r"Hence $x = \boxed{7}$.", ("7",)),
        (r"\boxed{7} and, once more, \boxed{7}", ("7",)),
        (r"\boxed{\frac12}, that is \boxed{0.5}", (r"\frac12", "0.5")),
        (r"\boxed{7} or \boxed{6}", ("7", "6")),
        *(
            (text, (text,))
            for text in (
                r"1 \boxed{7}",
                r"x + \boxed{7}",
                r"\frac{\boxed{7}}{2}",
                r"3^{\boxed{7}}",
                r"x \ne \boxed{7}",
                r"It is not \boxed{7}",
                r"\boxed{7} is wrong",
                r"\boxed{7} or 8",
                r"\boxed{1}\boxed{2}\boxed{3}\boxed{4}\boxed{5}",
            )
        ),
        (r"\boxed{1 \boxed{7}}", (r"1 \boxed{7}",)),
        (r"\boxed{\text{not }\boxed{7}}", (r"\text{not }\boxed{7}",)),
    ],
)
def test_a_submission_is_taken_whole(text: str, parts: tuple[str, ...]) -> None:
    """A box counts as all of a submission or amid prose, and no other; all boxes count."""
    assert extract_submitted(text) == parts


@given(text=st.lists(st.sampled_from(["\\boxed{", "}", " ", "7", "so", "+"])).map("".join))
def test_a_submission_is_never_lost(text: str) -> None:
    """Whatever a submission is, it is taken in one to four texts that stand in it."""
    parts = extract_submitted(text)
    assert 1 <= len(parts) <= 4
    assert all(part in text for part in parts)


def test_hostile_boxes_take_one_pass() -> None:
    """Half a million nested or unclosed boxes cost one pass over the text."""
    assert extract_boxed("\\boxed{" * 100_000) is None
    assert extract_boxed("\\boxed{" * 70_000 + "7" + "}" * 70_000) == "7"
    text = "a \\boxed{" * 40_000 + "7" + "}" * 40_000
    assert extract_submitted(text) == (text,)
    assert extract_submitted("\\sqrt[" * 100_000 + "\\boxed{7}") != ("7",)
