"""The gold policy on every source of search tasks: searched, opened, answered, cited, all right."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolenvs import ToolEnv
from toolenvs.policies import Gold
from toolenvs.rollout import plan_jobs, run_episodes
from toolenvs.tasks import load_tasks

REWARDS = {
    "terms": [
        {"reward": "answer", "weight": 0.6},
        {"reward": "answer_f1", "weight": 0.1},
        {"reward": "citations", "weight": 0.1},
        {"reward": "new_evidence", "weight": 0.1},
        {"reward": "retrieval_recall", "weight": 0.1},
    ]
}
# Where the data set names no supporting documents, three of the terms are masked.
SUPPORT, NO_SUPPORT = 1.0, 0.7


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes are built in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def gold_scores(spec: str, *, most: int | None = None) -> list[float]:
    """The scores of the gold policy, each task once, as the environment plays them."""
    pytest.importorskip("tantivy")
    source = load_tasks(spec, family="search")
    played = run_episodes(
        lambda: ToolEnv(family="search", tasks=source, rewards=REWARDS, max_turns=12),
        Gold(),
        plan_jobs(source, episodes=most),
        envs=2,
    )
    assert not any(episode.failure for episode in played.episodes)
    return [episode.score for episode in played.episodes]


@pytest.mark.parametrize("spec", ["", "builtin:test", "search_generated:seed=1,n=70,people=60"])
def test_gold_earns_everything_on_what_is_invented(spec: str) -> None:
    """Every task can be solved with the tools, and its support be cited."""
    assert gold_scores(spec) == pytest.approx([SUPPORT] * len(load_tasks(spec, family="search")))


REAL = {
    "hotpotqa:{}/search/hotpot_distractor_hf_66.jsonl": (66, SUPPORT),
    "hotpotqa:{}/search/ircot_hotpotqa.jsonl": (29, SUPPORT),
    "2wiki:{}/search/ircot_2wikimultihopqa.jsonl": (20, SUPPORT),
    "musique:{}/search/ircot_musique.jsonl": (20, SUPPORT),
    "musique:{}/search/ircot_musique.jsonl,corpus={}/formats/searchr1_multihop_corpus.jsonl": (
        20,
        SUPPORT,
    ),
    "musique:{}/search/hipporag_sample.json": (1, SUPPORT),
    "beir:{}/search/vespa_rag_queries.json,corpus={}/search/vespa_rag_docs.jsonl": (20, SUPPORT),
    "nq:{}/search/ultrarag_nq10.jsonl,corpus={}/search/ultrarag_corpus.jsonl": (10, NO_SUPPORT),
    "nq:{}/search/flashrag_nq_test.jsonl,corpus={}/search/searchr1_corpus.jsonl": (17, NO_SUPPORT),
    "nq:{}/search/nq_open_dev.jsonl,corpus={}/search/searchr1_corpus.jsonl": (300, NO_SUPPORT),
    "triviaqa:{}/search/triviaqa_sample.json,corpus={}/search/searchr1_corpus.jsonl": (
        1,
        NO_SUPPORT,
    ),
    "hotpotqa:{}/search/hotpot_dev_simplified.json,corpus={}/search/2wiki_corpus.json": (
        300,
        NO_SUPPORT,
    ),
    "searchr1:{}/formats/searchr1_multihop.parquet": (69, NO_SUPPORT),
}


@pytest.mark.shared
@pytest.mark.parametrize("spec", REAL)
def test_gold_earns_everything_on_real_data(shared: Path, spec: str) -> None:
    """With citations where the data set says what supports the answer, else all that is scored."""
    if ".parquet" in spec:
        pytest.importorskip("pyarrow")
    most, score = REAL[spec]
    scores = gold_scores(spec.replace("{}", str(shared / "data")), most=most)
    assert scores == pytest.approx([score] * most)
