"""BM25: what is found, in which order, and how its index comes to be."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import pickle
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from toolenvs import backends
from toolenvs.backends import Backend
from toolenvs.backends.bm25 import Bm25
from toolenvs.corpora import JoinedCorpora, Passages
from toolenvs.errors import DataError, RuntimeFailure, UnknownNameError, UsageError
from toolenvs.types import Passage

from .passages import CITIES, Counted, cities

each_example = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def ids(backend: Backend, query: str, top_k: int = 10) -> list[str]:
    """The ids of what is found, in order."""
    return [hit.id for hit in backend.search(query, top_k)]


def numbered(texts: list[str]) -> list[Passage]:
    """Passages with these texts, called by their numbers."""
    return [Passage(id=str(n), title="", text=text) for n, text in enumerate(texts)]


def test_it_is_a_backend() -> None:
    """It has every member of the protocol, and hits say what an agent needs."""
    backend = backends.make("bm25", corpus=cities())
    assert isinstance(backend, Backend)
    assert not backend.external
    (hit,) = backend.search("capital of Norway", 1)
    assert (hit.id, hit.title, hit.url) == ("oslo", "Oslo", "")
    assert hit.score > 0
    assert hit.snippet == CITIES[2].text


def test_titles_count_more() -> None:
    """Of two passages with the same words the one that has them in its title is first."""
    backend = Bm25(corpus=cities())
    assert ids(backend, "Lyon")[:2] == ["lyon", "rhone"]
    assert ids(backend, "rhone") == ["rhone", "lyon"]  # accents do not matter


def test_endings_of_words_do_not_matter() -> None:
    """In English, unless the language is given as none."""
    assert ids(Bm25(corpus=cities()), "camped") == ["tent"]
    assert ids(Bm25(corpus=cities(), language=""), "camped") == []


def test_stop_words_are_searched_where_there_are_no_others() -> None:
    """A band's name may consist of them."""
    backend = Bm25(corpus=cities())
    assert ids(backend, "The Who")[0] == "who"
    assert ids(backend, "who is in France")[0] == "lyon"


@pytest.mark.parametrize("query", ["", "   ", "\n", "?!", "x" * 50_000, "zebra"])
def test_nothing_is_found_where_nothing_fits(query: str) -> None:
    """Blank queries, punctuation, overlong words and unknown ones are no errors."""
    assert ids(Bm25(corpus=cities()), query) == []


@given(query=st.text() | st.text(alphabet='+-&|!(){}[]^"~*?:\\/ANDORT lyon<>\x00\ud800'))
@example(query='title:lyon AND (text:"x^2 OR')
@example(query="lyon~2 [a TO z] /re.*/ -rhone")
@example(query=" ".join(map(str, range(50_000))))
@each_example
def test_a_query_is_data(query: str) -> None:
    """For all texts: no syntax, no error, and no more hits than asked for."""
    assert len(Bm25(corpus=cities()).search(query, 2)) <= 2


def test_operators_are_words() -> None:
    """``-``, ``NOT`` and fields exclude nothing."""
    backend = Bm25(corpus=cities())
    assert set(ids(backend, "-lyon NOT lyon")) == {"lyon", "rhone"}
    assert ids(backend, "title:oslo") == ["oslo"]


@given(order=st.permutations(range(12)), top_k=st.integers(1, 12))
@each_example
def test_equal_scores_are_ordered_by_id(order: list[int], top_k: int) -> None:
    """For all orders of a corpus: whichever of equal passages came first does not matter."""
    text = "a river between two mountains and a lake of cold water"
    corpus = Passages(Passage(id=f"{n:02}", title="Same", text=text) for n in order)
    found = Bm25(corpus=corpus).search("two mountains, cold water, a lake, the same river", top_k)
    assert [hit.id for hit in found] == [f"{n:02}" for n in range(top_k)]
    assert len({hit.score for hit in found}) == 1


def test_ties_behind_the_cut_are_seen() -> None:
    """Of thousands of equal passages those with the first ids are found, wherever they stand."""
    names = [f"{n:05}" for n in range(3000)]
    random.Random(0).shuffle(names)
    corpus = Passages(Passage(id=name, title="", text="river lake") for name in names)
    assert ids(Bm25(corpus=corpus), "lake", 3) == ["00000", "00001", "00002"]


def test_the_order_of_a_corpus_changes_nothing() -> None:
    """The same passages in another order give the same hits with the same scores."""
    stream = random.Random(1)
    words = [f"w{n}" for n in range(50)]
    passages = numbered([" ".join(stream.choices(words, k=20)) for _ in range(300)])
    query = " ".join(words[:7])
    first = Bm25(corpus=Passages(passages)).search(query, 20)
    stream.shuffle(passages)
    assert Bm25(corpus=Passages(passages)).search(query, 20) == first


def test_a_shorter_list_begins_the_longer_one() -> None:
    """``top_k`` cuts a list and does not change it."""
    stream = random.Random(2)
    passages = numbered([" ".join(stream.choices("abcdefgh", k=5)) for _ in range(200)])
    backend = Bm25(corpus=Passages(passages))
    every = ids(backend, "b c d e", 200)
    assert all(ids(backend, "b c d e", k) == every[:k] for k in (1, 2, 7, 50))


def test_an_index_is_built_once_and_shared() -> None:
    """Backends of one corpus and one language read it once, and hold one index."""
    corpus = Counted(CITIES)
    first, second = Bm25(corpus=corpus), Bm25(corpus=corpus, title_boost=3.0)
    first.prepare()
    second.prepare()
    assert corpus.reads == 1
    assert first._index is second._index
    Bm25(corpus=corpus, language="").prepare()
    assert corpus.reads == 1  # the passages are there; only their words are indexed anew


def _search_in_process(cache: str, start: Any, found: Any) -> None:
    os.environ["XDG_CACHE_HOME"] = cache
    start.wait()
    corpus = Passages(numbered([f"word{n % 50} river" for n in range(2000)]))
    found.put([(hit.id, hit.score) for hit in Bm25(corpus=corpus).search("word7 river", 5)])


def test_many_processes_build_one_index(cache: Path) -> None:
    """Whoever comes first builds it, the others wait for it, and nothing is left over."""
    context = multiprocessing.get_context("spawn")
    start, found = context.Event(), context.Queue()
    workers = [
        context.Process(target=_search_in_process, args=(str(cache.parents[1]), start, found))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    start.set()
    results = [found.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert all(result == results[0] for result in results)
    assert [hit for hit, _ in results[0]] == ["1007", "1057", "107", "1107", "1157"]
    assert sorted(path.name.partition("-")[0] for path in cache.iterdir() if path.is_dir()) == [
        "bm25",
        "passages",
    ]


def test_what_a_killed_process_left_is_taken_away(cache: Path) -> None:
    """A half-made index has another name and is never opened."""
    Bm25(corpus=cities()).prepare()
    (made,) = cache.glob("bm25-*[!k]")
    left = made.with_name(f"{made.name}.part-x")
    made.rename(left)
    assert ids(Bm25(corpus=cities()), "oslo") == ["oslo"]
    assert not left.exists()


def put_in_place(file: Path, content: bytes) -> None:
    """Give a file other content; whoever still has it mapped keeps what was there."""
    other = file.with_name(f"{file.name}.other")
    other.write_bytes(content)
    other.replace(file)


@pytest.mark.parametrize("kind", ["bm25", "passages"])
def test_a_damaged_index_is_made_again(cache: Path, kind: str) -> None:
    """Files that were cut do not stop anybody."""
    Bm25(corpus=cities()).prepare()
    gc.collect()  # nobody has it open
    folder = next(path for path in cache.iterdir() if path.is_dir() and path.name.startswith(kind))
    for file in sorted(folder.iterdir()):
        put_in_place(file, file.read_bytes()[:10])
    assert ids(Bm25(corpus=cities()), "oslo") == ["oslo"]


@pytest.mark.parametrize("kind", ["bm25", "passages"])
@pytest.mark.parametrize("how", ["cut", "emptied", "removed", "changed"])
def test_a_damaged_file_is_found_whichever_it_is(cache: Path, kind: str, how: str) -> None:
    """Before anything is read from it: the index is made again and finds what it found."""
    passages = numbered([f"word{n % 50} river tie" for n in range(300)])
    found = ids(Bm25(corpus=Passages(passages)), "word7 river")
    folder = next(path for path in cache.iterdir() if path.is_dir() and path.name.startswith(kind))
    for name in sorted(path.name for path in folder.iterdir()):
        file = folder / name
        if not file.exists():  # made again, its segment has another name
            continue
        gc.collect()  # nobody has it open
        content = file.read_bytes()
        if how == "removed":
            file.unlink()
        elif how == "changed":
            middle = len(content) // 2
            put_in_place(file, content[:middle] + b"\xff\x00\xff" + content[middle + 3 :])
        else:
            put_in_place(file, content[: len(content) // 2] if how == "cut" else b"")
        assert ids(Bm25(corpus=Passages(passages)), "word7 river") == found, name


def test_more_hits_than_there_are_passages_may_be_asked_for() -> None:
    """However many: no room is made for what cannot come."""
    for top_k in (1000, 2**40):
        assert sorted(ids(Bm25(corpus=cities()), "city river", top_k)) == ["lyon", "rhone"]


def test_a_cache_that_cannot_be_written_is_a_failure_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the place and what to do."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(RuntimeFailure, match="XDG_CACHE_HOME") as raised:
        Bm25(corpus=cities()).prepare()
    assert raised.value.kind == "index"


def test_threads_share_a_backend() -> None:
    """Searches at the same time give what they give alone."""
    passages = numbered([f"word{n % 50} river{n % 7} lake" for n in range(2000)])
    backend = Bm25(corpus=Passages(passages))
    queries = [f"word{n} river{n % 7} lake" for n in range(50)]
    alone = [backend.search(query, 10) for query in queries]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda query: backend.search(query, 10), queries)) == alone


def test_a_fork_searches_too() -> None:
    """A child that was forked after the index was opened goes on with it."""
    backend = Bm25(corpus=cities())
    backend.prepare()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "w") as pipe:
            json.dump(ids(backend, "oslo"), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert json.load(pipe) == ["oslo"]
    os.waitpid(child, 0)


def test_a_backend_can_be_pickled() -> None:
    """A copy finds the same, though it opens the index for itself."""
    backend = Bm25(corpus=cities(), title_boost=2.0)
    backend.prepare()
    copy = pickle.loads(pickle.dumps(backend))
    assert copy.search("Lyon", 3) == backend.search("Lyon", 3)
    assert copy.fingerprint() == backend.fingerprint()


def test_the_fingerprint_names_all_that_a_result_depends_on() -> None:
    """Options and content; not where anything lies."""
    made = [
        Bm25(corpus=cities()),
        Bm25(corpus=cities(), language=""),
        Bm25(corpus=cities(), title_boost=2.0),
        Bm25(corpus=cities(), other_share=0.0),
        Bm25(corpus=Passages(CITIES[:4])),
    ]
    assert len({backend.fingerprint() for backend in made}) == len(made)
    assert Bm25(corpus=cities()).fingerprint() == made[0].fingerprint()


def test_passages_are_opened_by_id_and_url() -> None:
    """An id goes before a URL; what is not there is None; the nearest id is known."""
    backend = Bm25(corpus=cities())
    assert backend.open("lyon") == CITIES[0]
    assert backend.open("https://example.org/lyon") == CITIES[0]
    assert backend.open("Lyon") is None
    assert backend.open("") is None
    assert backend.nearest("lyons") == "lyon"
    assert backend.nearest("\x00") == ""


def test_half_characters_do_no_harm() -> None:
    """Lone surrogates in a corpus and in queries."""
    corpus = Passages([Passage(id="a", title="\ud800", text="river \udfff lake")])
    backend = Bm25(corpus=corpus)
    assert ids(backend, "river \ud800") == ["a"]
    assert backend.open("\ud800") is None


def test_two_different_passages_with_one_id_are_refused() -> None:
    """Else a citation could mean either."""
    twice = [Passages([Passage(id="a", title="", text=text)]) for text in ("one", "two")]
    with pytest.raises(DataError, match="two different passages have the id 'a'"):
        Bm25(corpus=JoinedCorpora(twice)).prepare()


def test_a_missing_package_is_a_failure_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that mends it; nothing is needed before a search."""
    monkeypatch.setitem(sys.modules, "tantivy", None)
    backend = Bm25(corpus=cities())
    with pytest.raises(RuntimeFailure, match="pip install tantivy"):
        backend.prepare()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"corpus": cities(), "language": "klingon"}, UnknownNameError),
        ({"corpus": cities(), "title_boost": -1.0}, UsageError),
        ({"corpus": cities(), "title_boost": float("nan")}, UsageError),
        ({"corpus": cities(), "title_boost": float("inf")}, UsageError),
        ({"corpus": cities(), "title_boost": "x"}, UsageError),
        ({"corpus": cities(), "language": None}, UsageError),
        ({"corpus": cities(), "other_share": 1.5}, UsageError),
        ({"corpus": cities(), "colour": "red"}, UnknownNameError),
        ({"corpus": 5}, UsageError),
        ({}, UsageError),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    """When the backend is made, not when it is asked."""
    with pytest.raises(error):
        backends.make("bm25", **options)


def test_an_empty_corpus_is_refused() -> None:
    """Nothing could ever be found."""
    with pytest.raises(UsageError, match="is empty"):
        Bm25(corpus=Passages([])).prepare()
