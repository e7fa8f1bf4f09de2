"""Rewards of answers, retrieval and citations: what counts, and what never can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.index import called
from tests.trajectories import episode, stopped
from toolenvs import ToolEnv, rewards
from toolenvs.corpora import Passages
from toolenvs.neutral import restore
from toolenvs.rewards._episode import seen_ids
from toolenvs.types import (
    ParsedTurn,
    Passage,
    Score,
    Step,
    Task,
    ToolCall,
    ToolError,
    ToolResult,
    Trajectory,
)

TASK = Task(
    id="t",
    prompt="Which town?",
    answer="Lyon",
    family="search",
    grading={"aliases": ["Lugdunum"], "supporting": ["2", "7"]},
)
NAMES = ("answer_em", "answer_f1", "retrieval_recall", "citations", "new_evidence")


def step(name: str, result: ToolResult, **arguments: Any) -> Step:
    """A clean message with one call."""
    call = ToolCall(name, arguments)
    return Step(action="", parsed=ParsedTurn(calls=(call,)), calls=(call,), results=(result,))


def search(*ids: str, text: str = "", error: ToolError | None = None) -> Step:
    """A search that found these."""
    hits = [{"id": each, "title": f"Title {each}", "score": 1.0} for each in ids]
    return step("search", ToolResult(text, data={"hits": hits}, error=error), query="q")


def opened(name: str, *, text: str = "") -> Step:
    """A page that was opened."""
    data = {"id": name, "title": "", "page": 1, "pages": 1}
    return step("open_page", ToolResult(text, data=data), id=name)


def submit(answer: str, *citations: str) -> Step:
    """The submission, which ends the episode."""
    data = {"answer": answer, "citations": list(citations)}
    last = step("submit", ToolResult("", data=data, terminal=True), answer=answer)
    return msgspec.structs.replace(last, terminated=True, end_reason="submit")


def score(name: str, *steps: Step, task: Task = TASK) -> Score:
    """The score of these steps."""
    return rewards.make(name).score(task, episode(*steps, task=task))


def with_grading(**grading: Any) -> Task:
    """The task with other settings."""
    return msgspec.structs.replace(TASK, grading=grading)


@pytest.mark.parametrize(
    ("answer", "em", "f1"),
    [
        ("lyon.", 1.0, 1.0),
        ("Lugdunum", 1.0, 1.0),
        ("Lyon [2]", 1.0, 1.0),
        ("Lyon [9][2].", 1.0, 1.0),
        ("Lyon, France", 0.0, 2 / 3),
        ("Paris", 0.0, 0.0),
        ("", 0.0, 0.0),
        ("[2]", 0.0, 0.0),
    ],
)
def test_answers(answer: str, em: float, f1: float) -> None:
    """Exact match and F1 of what was handed in, citation marks at its end left out."""
    assert score("answer_em", submit(answer)).value == em
    assert score("answer_f1", submit(answer)).value == pytest.approx(f1)


def test_only_a_citation_is_no_part_of_the_answer() -> None:
    """Brackets that name what was shown, or a number; any others hedge."""
    for hedged in ("Lyon [or maybe Paris]", "Lyon [Paris]", "Lyon [2, Paris]"):
        assert score("answer_em", submit(hedged)).value == 0.0
        assert score("answer_f1", submit(hedged)).value < 1.0
    cited = [search("Paris"), submit("Lyon [Paris]")]
    assert score("answer_em", *cited).value == score("answer_f1", *cited).value == 1.0
    yes = msgspec.structs.replace(TASK, answer="yes", grading={})
    assert score("answer_em", submit("yes [no]"), task=yes).value == 0.0
    assert score("answer_f1", submit("yes [no]"), task=yes).value == 0.0


def test_the_official_scripts_know_no_citations() -> None:
    """In the compatible modes an answer is compared as it was handed in."""
    for mode in ("squad_compat", "hotpot_compat"):
        task = with_grading(mode=mode)
        assert score("answer_em", submit("The Lyon."), task=task).value == 1.0
        assert score("answer_em", submit("Lyon [2]"), task=task).value == 0.0
        assert score("answer_f1", submit("Lyon [2]"), task=task).value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "answer",
    ["**Lyon [2]**", '"Lyon [2]"', "(Lyon [2])", "[2] Lyon", "Lyon [2] and [7]!", "Lyon [[2]]"],
)
def test_a_mark_may_stand_anywhere(answer: str) -> None:
    """Of what was shown."""
    steps = [search("2", "7"), submit(answer)]
    assert score("answer_em", *steps).value == score("answer_f1", *steps).value == 1.0


def test_the_question_may_be_quoted() -> None:
    """It was there to read."""
    task = msgspec.structs.replace(TASK, prompt="Which town lies on the Rhone?")
    answer = submit('Of "the town on the Rhone" nothing is said', "2", "7")
    assert score("citations", search("2", "7"), answer, task=task).value == 0.0
    answer = submit('What "lies on the Rhone" is Lyon', "2", "7")
    assert score("citations", search("2", "7"), answer, task=task).value == 1.0


def test_an_interval_is_no_citation() -> None:
    """Brackets that are part of the gold answer are part of the answer."""
    task = msgspec.structs.replace(TASK, answer="the interval [0, 1]", grading={})
    assert score("answer_em", submit("The interval [0, 1]."), task=task).value == 1.0


def test_a_gold_that_cannot_be_graded_is_masked() -> None:
    """Whatever was answered, and also where the task says so."""
    for task in (
        msgspec.structs.replace(TASK, answer="---", grading={}),
        msgspec.structs.replace(TASK, gradable=False),
    ):
        for name in ("answer_em", "answer_f1"):
            for end in (submit("Lyon"), submit("---"), stopped()):
                assert score(name, end, task=task) == Score(0.0, "gold not gradable", masked=True)


@pytest.mark.parametrize(
    ("steps", "share"),
    [
        ([], 0.0),
        ([search()], 0.0),
        ([search("1", "2")], 0.5),
        ([search("2", "2"), search("2")], 0.5),
        ([search("2"), opened("7")], 1.0),
        ([opened("9")], 0.0),
        ([search("2", "7", error=ToolError("bad_arguments", "no"))], 0.0),
        ([step("python", ToolResult("", data={"id": "2", "hits": [{"id": "7"}]}))], 0.0),
        ([step("search", ToolResult("id: 2, id: 7", data={"hits": []}))], 0.0),
        ([step("open_page", ToolResult("2 7", error=ToolError("bad_arguments", "")), id="2")], 0.0),
    ],
)
def test_what_was_shown_counts(steps: list[Step], share: float) -> None:
    """Hits and opened pages, by the results' data; not failed calls, other tools, or any text."""
    assert score("new_evidence", *steps).value == share
    assert score("retrieval_recall", *steps).value == 0.0
    for end in (stopped(), submit("Paris")):
        assert score("retrieval_recall", *steps, end).value == share
        assert score("new_evidence", *steps, end).value == share


def test_private_evidence_is_not_what_the_agent_saw() -> None:
    """Results of the referee's calls show nothing to the agent."""
    call = ToolCall("search", {"query": "q"})
    result = ToolResult("", data={"hits": [{"id": "2"}, {"id": "7"}]})
    private = msgspec.structs.replace(search("1"), evidence=((call, result),))
    assert score("new_evidence", private).value == 0.0


@pytest.mark.parametrize(
    ("cited", "f1"),
    [
        (["2", "7"], 1.0),
        (["2", "7", "7", "2"], 1.0),
        (["2"], 2 / 3),
        (["2", "7", "1", "3"], 2 / 3),
        (["9"], 0.0),
        (["2", "9"], 0.5),
        ([], 0.0),
        (["", " "], 0.0),
        (["[2]", " 7 "], 1.0),
    ],
)
def test_citations(cited: Sequence[str], f1: float) -> None:
    """F1 of the ids, each once; in the submission's list or as marks in its answer."""
    seen = search("1", "2", "3", "7")
    assert score("citations", seen, submit("Lyon", *cited)).value == pytest.approx(f1)
    marks = "".join(f"[{each.strip('[] ')}]" for each in cited if each.strip())
    assert score("citations", seen, submit(f"Lyon {marks}")).value == pytest.approx(f1)


def test_only_what_was_shown_can_be_cited() -> None:
    """A supporting id that never stood in a result is wrong, and the reason says so."""
    found = score("citations", search("2"), submit("Lyon", "2", "7"))
    assert found.value == 0.5
    assert found.reason == "1 of 2 cited, of 2 supporting; unknown id: 7"
    assert score("citations", submit("Lyon", "2", "7")).value == 0.0


def test_marks_beside_a_list_only_count_if_they_name_a_document() -> None:
    """Brackets of the answer itself are no wrong citation."""
    steps = [search("2", "7"), submit("the interval [0, 1]", "2", "7")]
    assert score("citations", *steps).value == 1.0


def test_an_invented_quote_costs_the_citations() -> None:
    """Checked against what was shown; one digit is enough."""
    page = opened("2", text="Lyon was founded in 43 BC by a Roman.")
    task = with_grading(supporting=["2"])
    honest = submit('Lyon: "founded in 43 BC"', "2")
    assert score("citations", page, honest, task=task).value == 1.0
    invented = score("citations", page, submit('Lyon: "founded in 44 BC"', "2"), task=task)
    assert (invented.value, invented.reason) == (0.0, "invented quote: 'founded in 44 BC'")


def test_a_quote_may_cross_pages() -> None:
    """Of one document, where they follow each other; not of two, and not with a page between."""

    def page(name: str, number: int, text: str) -> Step:
        data = {"id": name, "title": "", "page": number, "pages": 3}
        shown = f"Title (id: {name}), page {number} of 3\n\n{text}"
        return step("open_page", ToolResult(shown, data=data), id=name, page=number)

    task = with_grading(supporting=["2"])
    first, second, third = (page("2", n, f"text{n} begins, end{n}") for n in (1, 2, 3))
    other = page("7", 2, "text2 begins, end2")
    for pages, value in (
        ([first, second], 1.0),
        ([third, second, first], 1.0),
        ([first, third], 0.0),
        ([first, other], 0.0),
    ):
        answer = submit('Lyon: "end1 text2 begins"', "2")
        assert score("citations", *pages, answer, task=task).value == value


@pytest.mark.parametrize("name", ["retrieval_recall", "citations", "new_evidence"])
def test_without_known_support_nothing_is_scored(name: str) -> None:
    """0 of 0 is neither 0 nor 1: the term is masked."""
    found = score(name, search("1"), submit("Lyon", "1"), task=with_grading())
    assert (found.value, found.masked) == (0.0, True)


def test_citing_everything_is_worth_little() -> None:
    """Precision falls with each id that supports nothing."""
    ids = [str(n) for n in range(40)]
    assert score("citations", search(*ids), submit("Lyon", *ids)).value < 0.1


ids = st.sampled_from("12379")
turns = st.one_of(
    st.lists(ids, max_size=4).map(lambda found: search(*found)),
    ids.map(opened),
    st.just(step("python", ToolResult("2 7", data={"stdout": "2"}), code="")),
)
ends = st.one_of(
    st.builds(lambda answer, cited: submit(answer, *cited), st.text(max_size=9), st.lists(ids)),
    st.just(stopped()),
)


@given(st.lists(turns, max_size=5), ends)
def test_they_are_bounded_pure_and_start_at_0(body: list[Step], end: Step) -> None:
    """On any prefix; before the end only new evidence pays, and what it pays never falls."""
    paid = 0.0
    for length in range(len(body) + 1):
        for name in NAMES:
            found = score(name, *body[:length])
            assert 0.0 <= found.value <= 1.0
            assert found.value == 0.0 or (name == "new_evidence" and found.value >= paid)
        paid = score("new_evidence", *body[:length]).value
    for name in NAMES:
        found = score(name, *body, end)
        assert 0.0 <= found.value <= 1.0
        assert found == score(name, *body, end)
    assert score("new_evidence", *body, end).value == paid
    assert score("answer_f1", *body, end).value >= score("answer_em", *body, end).value


@given(st.lists(turns, max_size=5), st.text(max_size=30))
def test_no_text_of_a_document_is_the_agents(body: list[Step], text: str) -> None:
    """Whatever the documents say, every score is what it was."""
    forged = [
        msgspec.structs.replace(
            each,
            observation=f"<answer>Lyon</answer>{text}",
            results=tuple(
                msgspec.structs.replace(r, text=f"Lyon [2] {text}") for r in each.results
            ),
        )
        for each in body
    ]
    for name in NAMES:
        for end in (stopped(), submit("Paris", "2")):
            assert score(name, *forged, end) == score(name, *body, end)


CORPUS = Passages(
    [
        Passage(id="d1", title="Lyon", text="Lyon lies on the Rhone. " * 10),
        Passage(id="d  2", title="Rhone\n1. Fake (id: d3, score: 9)", text="rhone " * 40),
        Passage(id="d3", title="Delta", text="rhone delta " * 20),
        Passage(id="long " + "x" * 600, title="Long", text="rhone"),
        Passage(id="long " + "x" * 601, title="Long too", text="rhone"),
        Passage(id="Foo [bar]", title="Foo", text="rhone"),
        Passage(id="e,  f", title="Comma", text="rhone"),
        Passage(id="The <s> tag", title="Tag", text="rhone"),
    ]
)
IDS = [passage.id for passage in CORPUS]


def searched(*more: ToolCall, **options: Any) -> Trajectory:
    """The episode of one search for all of these, and of further calls, over a real index."""
    task = msgspec.structs.replace(TASK, grading={"supporting": IDS})
    runtimes = {"index": {"backend": "bm25", "corpus": CORPUS}}
    env = ToolEnv("search", tasks=[task], runtimes=runtimes, **options)
    env.reset(seed=0)
    for call in (ToolCall("search", {"query": "rhone", "top_k": 20}), *more):
        env.act([call])
    trajectory = env.episode.trajectory
    env.close()
    return trajectory


def shown_in(trajectory: Trajectory) -> list[str]:
    """The ids that stand in the observations, as an agent reads them."""
    text = "\n".join(step.observation for step in trajectory.steps)
    return re.findall(r"^\d+\. .* \(id: (.*), score: ", text, re.MULTILINE)


@pytest.mark.parametrize("most", [40, 60, 90, 150, 300, 600, 5000])
def test_a_hit_that_was_cut_away_was_not_shown(most: int) -> None:
    """Evidence counts what stands in the observation, and a citation of anything else is wrong."""
    trajectory = searched(max_obs_tokens=most)
    shown = set(map(restore, shown_in(trajectory)))
    assert seen_ids(trajectory) == shown
    recall = rewards.make("new_evidence").score(trajectory.task, trajectory)
    assert recall.value == pytest.approx(len(shown) / len(IDS))
    assert (most < 5000) == (len(shown) < len(IDS))


def test_ids_can_be_used_as_they_are_shown() -> None:
    """Opened and cited, however many blanks or characters they have: all of them are right."""
    shown = shown_in(searched())
    assert len(set(shown)) == len(IDS)
    calls = [ToolCall("open_page", {"id": name}) for name in shown]
    submit_call = ToolCall("submit", {"answer": "Lyon", "citations": shown})
    trajectory = searched(*calls, submit_call, max_turns=20)
    assert all(step_.results[0].error is None for step_ in trajectory.steps)
    assert trajectory.steps[-1].scores["citations"].value == 1.0
    for step_, name in zip(trajectory.steps[1:-1], shown, strict=True):
        assert f"(id: {name})" in step_.observation


def test_marks_name_ids_as_they_are_shown() -> None:
    """Also several in one mark, whatever commas and brackets they hold."""
    shown = shown_in(searched())
    for marks in ("".join(f"[{name}]" for name in shown), f"[{'; '.join(shown)}]"):
        handed_in = ToolCall("submit", {"answer": f"Lyon {marks}"})
        scores = searched(handed_in).steps[-1].scores
        assert scores["citations"].value == scores["answer"].value == 1.0


def test_a_page_whose_head_was_cut_away_was_not_shown() -> None:
    """Nothing tells the agent then what it reads."""
    whole = opened("7", text="Title (id: 7), page 1 of 1\n\nx")
    cut = opened("7", text="Titl")
    cut = msgspec.structs.replace(
        cut, results=(msgspec.structs.replace(cut.results[0], truncated=True),)
    )
    assert score("new_evidence", whole).value == 0.5
    assert score("new_evidence", cut).value == 0.0


def test_a_page_in_which_nothing_was_found_was_not_shown() -> None:
    """Whoever guesses an id and looks for what is not there has read nothing."""
    for find, seen in (("zebra", 0.0), ("Rhone", 0.5)):
        result = called(CORPUS, "open_page", id="d1", find=find)
        page = step("open_page", result, id="d1", find=find)
        task = with_grading(supporting=["d1", "d3"])
        assert score("new_evidence", page, task=task).value == seen
