"""Rows that ask a question of a corpus, in the layouts of the data sets in use.

One reader for all of them, told apart by their fields, since the data sets are passed on in each
other's layouts (FlashRAG's and Search-R1's above all). ``read_question`` says which.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.errors import DataError
from toolenvs.sources._jsonlines import Row, json_type

_IDS = ("id", "_id", "QuestionId", "question_id", "query_id")
_ASKED = ("question", "Question", "query_text")
ANSWERS = ("golden_answers", "answers", "answer", "Answer")
"""Fields of the right answers, the first counts; else ``reward_model`` holds them."""
_KEPT = ("type", "level", "category", "data_source")
LAYOUT = (
    *("context", "supporting_facts", "paragraphs", "supporting_titles", "answer_aliases"),
    *("golden_answers", "answers", "metadata", "reward_model", "answerable", "type", "level"),
)
"""Fields of which one at least makes a layout; see ``is_laid_out``."""
_NUMBERED = re.compile(r"(?:train|dev|test|val|validation)[_-]\d+")
_SEARCH_R1 = re.compile(r"\AAnswer the given question\..*Question:\s*(?P<question>.*)\Z", re.DOTALL)


class Paragraph(msgspec.Struct, frozen=True):
    """A paragraph that came with a question, and whether the answer needs it."""

    title: str
    text: str
    supporting: bool = False


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One row.

    Attributes:
        id: stable text id.
        text: what is asked.
        golds: the right answers, each once, the main one first; ``()`` if none is given.
        paragraphs: what came with it.
        titles: titles of documents that the answer needs and that are not among ``paragraphs``.
        data: what kind of question it is.
        answerable: False if the data set says that the documents do not answer it.
    """

    id: str
    text: str
    golds: Sequence[str]
    paragraphs: Sequence[Paragraph] = ()
    titles: Sequence[str] = ()
    data: Mapping[str, Any] = {}
    answerable: bool = True


def read_question(row: Row, *, source: str) -> Question:
    """Read a row.

    A row's id stays as it is, but for those that only number the rows of a file: ``test_0`` becomes
    ``nq-test_0``, and 17, or no id in the 18th row of ``dev.jsonl``, ``nq-dev-17``.

    ================  ==============================================================================
    HotpotQA, 2Wiki   ``context`` as ``[[title, [sentence, ...]], ...]`` or as ``{"title": [...],
                      "sentences": [[...], ...]}``, ``supporting_facts`` likewise; either may be
                      JSON in a text
    MuSiQue, ircot,   ``paragraphs`` of ``title``, ``text`` or ``paragraph_text``,
    HippoRAG          ``is_supporting``; ``answer_aliases``, ``supporting_titles``, ``answerable``
    NQ-open, DPR      ``answer``, ``answers``: a list
    FlashRAG          ``golden_answers``, ``metadata``
    Search-R1         ``reward_model.ground_truth.target``; the question out of ``prompt``
    TriviaQA          ``Answer`` of ``Value`` and ``Aliases``, or all three in lower case
    ================  ==============================================================================

    Args:
        row: the row.
        source: name of the source, for such ids.

    Raises:
        DataError: It asks nothing, or a field has the wrong type; with the row's place, the field
            and its value.
    """
    try:
        return _question(row, source)
    except DataError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, RecursionError) as error:
        raise DataError(f"{row.place}: the row has no known layout: {error}.") from error


def is_laid_out(row: Row, *, bare: bool = False) -> bool:
    """Tell whether a row has what makes one of these layouts, besides a question and one answer.

    Rows of other data sets, such as GSM8K, have those too.

    Args:
        row: the row.
        bare: a question and one answer of one line are a layout.
    """
    answer = row.fields.get("answer", row.fields.get("Answer"))
    if isinstance(answer, list | dict) or any(name in row.fields for name in LAYOUT):
        return True
    return bare and answer is not None and "\n" not in str(answer).strip()


def listed(
    row: Row, name: str, value: Any, *, wanted: str = "a list of texts, or one text"
) -> Sequence[Any]:
    """A field that holds a list: null is an empty one, and a text is its only item.

    Raises:
        DataError: It is anything else.
    """
    if isinstance(value, list | tuple):
        return value
    if value is None or isinstance(value, str):
        return [] if value is None else [value]
    raise wrong(row, name, value, wanted)


def wrong(row: Row, name: str, value: Any, wanted: str) -> DataError:
    """The error for a value of another type than ``wanted``, in a field or in a part of it."""
    shown = reprlib.repr(value)
    return DataError(
        f"{row.place}: field {name!r} holds {json_type(value)} ({shown}); it must be {wanted}."
    )


def _question(row: Row, source: str) -> Question:
    titles, paragraphs = _paragraphs(row)
    kind = {**_object(row, "metadata"), **row.fields}
    return Question(
        id=_id(row, source),
        text=_asked(row).strip(),
        golds=list(dict.fromkeys(gold.strip() for gold in _golds(row))),
        paragraphs=paragraphs,
        titles=titles,
        data={name: kind[name] for name in _KEPT if isinstance(kind.get(name), str)},
        answerable=row.fields.get("answerable") is not False,
    )


def _id(row: Row, source: str) -> str:
    name = next((name for name in _IDS if row.fields.get(name) is not None), "")
    text = row.text(name).strip() if name else ""
    data_set = row.fields.get("data_source")
    if text and isinstance(data_set, str) and data_set and "reward_model" in row.fields:
        return f"{data_set}-{text}"  # Search-R1 joins data sets whose ids may be equal
    if not text or text.isdecimal():
        stem = row.stem.replace("_", "-").removeprefix(f"{source}-")
        return f"{source}-{stem}-{text or row.number}"
    return f"{source}-{text}" if _NUMBERED.fullmatch(text) else text


def _asked(row: Row) -> str:
    for name in _ASKED:
        if isinstance(row.fields.get(name), str):
            return str(row.fields[name])
    prompt = row.fields.get("prompt")
    if not isinstance(prompt, list):
        row.require("question")
        raise row.wrong_type("question", "a text")
    for message in reversed(prompt):
        if isinstance(message, dict) and message.get("role") == "user":
            asked = _said(row, message.get("content"))
            framed = _SEARCH_R1.match(asked.strip())
            return framed["question"] if framed else asked
    raise row.wrong_type("prompt", "a chat with a message of the user")


def _said(row: Row, content: Any) -> str:
    """The text of a message, also of one in parts."""
    texts = [
        part.get("text") if isinstance(part, dict) else part
        for part in listed(row, "prompt.content", content)
        if not isinstance(part, dict) or part.get("type", "text") in ("text", "input_text")
    ]
    if not all(isinstance(text, str) for text in texts):
        raise wrong(row, "prompt.content", content, "a text or a list of parts with texts")
    return "\n".join(map(str, texts))


# -- answers -------------------------------


def _golds(row: Row) -> Iterator[str]:
    for name in ANSWERS:
        if row.fields.get(name) is not None:
            yield from _texts(row, name, _answers(row, name))
            break
    else:
        truth = _object(row, "reward_model").get("ground_truth")
        target = truth.get("target") if isinstance(truth, dict) else truth
        values = target if isinstance(target, list) else [] if target is None else [target]
        yield from _texts(row, "reward_model", values)
    aliases = listed(row, "answer_aliases", row.fields.get("answer_aliases"))
    yield from _texts(row, "answer_aliases", aliases)


def _answers(row: Row, name: str) -> Sequence[Any]:
    """The answers in a text, a number, a list, or TriviaQA's object."""
    if name in row.numbers:
        return [row.numbers[name]]
    value = row.fields[name]
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    lower = {key.lower(): item for key, item in value.items()}
    main = [] if lower.get("value") is None else [lower["value"]]
    return [*main, *listed(row, f"{name}.aliases", lower.get("aliases"))]


def _texts(row: Row, name: str, values: Sequence[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            found = json_type(value)
            raise DataError(f"{row.place}: field {name!r} holds {found}; an answer is a text.")
        yield str(value)


# -- paragraphs ----------------------------


def _paragraphs(row: Row) -> tuple[Sequence[str], Sequence[Paragraph]]:
    """The titles that are needed and do not occur among the paragraphs, and the paragraphs."""
    given = {**_object(row, "metadata"), **row.fields}
    needed = dict.fromkeys(_needed_titles(row, given))
    found = [
        Paragraph(title, text, supporting or title in needed)
        for title, text, supporting in (*_flagged(row), *_in_context(row, given.get("context")))
    ]
    there = {paragraph.title for paragraph in found}
    return [title for title in needed if title not in there], found


def _needed_titles(row: Row, given: Mapping[str, Any]) -> Iterator[str]:
    facts = _decoded(row, given.get("supporting_facts"))
    if isinstance(facts, dict):
        facts = [[title] for title in listed(row, "supporting_facts.title", facts.get("title"))]
    wanted = "a list of [title, sentence]"
    for fact in listed(row, "supporting_facts", facts, wanted=wanted):
        if not isinstance(fact, list) or not fact:
            raise wrong(row, "supporting_facts", fact, wanted)
        yield _text(row, "supporting_facts", fact[0])
    # Titles are told of paragraphs that are not flagged one by one.
    if not any(flag for _, _, flag in _flagged(row)):
        for title in listed(row, "supporting_titles", row.fields.get("supporting_titles")):
            yield _text(row, "supporting_titles", title)


def _flagged(row: Row) -> Iterator[tuple[str, str, bool]]:
    wanted = "a list of objects with a title and a text"
    for paragraph in listed(row, "paragraphs", row.fields.get("paragraphs"), wanted=wanted):
        if not isinstance(paragraph, dict):
            raise wrong(row, "paragraphs", paragraph, wanted)
        text = paragraph.get("text", paragraph.get("paragraph_text"))
        flag = paragraph.get("is_supporting") is True
        title = _text(row, "paragraphs.title", paragraph.get("title") or "")
        yield title, _text(row, "paragraphs.text", text or ""), flag


def _in_context(row: Row, context: Any) -> Iterator[tuple[str, str, bool]]:
    context = _decoded(row, context)
    if isinstance(context, dict):
        titles = listed(row, "context.title", context.get("title"))
        name = "sentences" if "sentences" in context else "content"
        sentences = listed(row, f"context.{name}", context.get(name))
        if len(titles) != len(sentences):
            count = f"{len(titles)} titles and {len(sentences)} {name}"
            raise DataError(f"{row.place}: field 'context' holds {count}; both must be as many.")
        context = list(zip(titles, sentences, strict=True))
    wanted = "a list of pairs of title and sentences"
    for paragraph in listed(row, "context", context, wanted=wanted):
        if not isinstance(paragraph, list | tuple) or len(paragraph) != 2:
            raise wrong(row, "context", paragraph, wanted)
        title, sentences = paragraph
        texts = listed(row, "context.sentences", sentences)
        said = _joined([_text(row, "context.sentences", each) for each in texts])
        yield _text(row, "context.title", title), said, False


def _text(row: Row, name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise wrong(row, name, value, "a text")
    return str(value)


def _joined(sentences: Sequence[str]) -> str:
    """The sentences as one text; HotpotQA's begin with their space, 2Wiki's do not."""
    if len(sentences) == 1:
        return sentences[0]
    text = ""
    for sentence in sentences:
        gap = "" if not text or text[-1].isspace() or sentence[:1].isspace() else " "
        text += gap + sentence
    return text.strip()


def _decoded(row: Row, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith(("[", "{")):  # prose, as SQuAD's context is
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{row.place}: a text that should be JSON is none: {error}.") from error


def _object(row: Row, name: str) -> Mapping[str, Any]:
    value = row.fields.get(name)
    return value if isinstance(value, dict) else {}
