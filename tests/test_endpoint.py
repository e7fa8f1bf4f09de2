"""The model policy against a server of this process that answers as told."""

from __future__ import annotations

import email.utils
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from toolenvs.drivers import Loop, Sleep, run
from toolenvs.endpoint import Model, read_reply
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.formats.hermes import Hermes
from toolenvs.formats.openai import Openai
from toolenvs.formats.tags import Tags
from toolenvs.policies import Actor, Scene
from toolenvs.protocols import ToolFormat
from toolenvs.types import Task, ToolSpec, Turn
from toolenvs.web import Retries

QUICK = Retries(attempts=4, first_s=0.01, longest_s=5.0)
PYTHON = ToolSpec("python", "", {"type": "object", "properties": {"code": {"type": "string"}}})
START = {
    "messages": [{"role": "system", "content": "tools"}, {"role": "user", "content": "1+1?"}],
    "left": {"turns": 9},
}


class QuietServer(ThreadingHTTPServer):
    """A server that says nothing of clients that hang up."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: the client's side is what is tested."""


class Stub:
    """An endpoint that gives the replies it was told, in order, and keeps what it was sent."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, dict[str, str], bytes]] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                stub.paths.append(self.path)
                stub.headers.append(dict(self.headers))
                length = int(self.headers["Content-Length"])
                stub.bodies.append(json.loads(self.rfile.read(length)))
                status, headers, content = stub.replies.pop(0)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - inherited
                """Keep the test's output clean."""

        self._server = QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def reply(self, status: int, content: object = "", **headers: str) -> None:
        """Add a reply; an object is sent as JSON."""
        text = content if isinstance(content, str) else json.dumps(content)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.replies.append((status, named, text.encode()))

    def say(self, content: str | None, **choice: Any) -> None:
        """Add a completion."""
        message = {"role": "assistant", "content": content, **choice.pop("message", {})}
        reply = {"message": message, "finish_reason": "stop", **choice}
        self.reply(200, {"choices": [reply]})

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """A running endpoint; no key is set."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = Stub()
    yield server
    server.close()


def model(stub: Stub, **options: Any) -> Model:
    """A model at the stub that does not wait long."""
    return Model(stub.url, "m", retries=QUICK, timeout_s=5.0, **options)


def actor(player: Model, form: ToolFormat | None = None) -> Actor:
    """An episode of it."""
    made = form or Hermes()
    return player.start(Task(id="t", prompt="1+1?"), Scene(format=made, specs=(PYTHON,)))


async def act(player: Actor, observation: str = "", info: Any = START) -> Turn:
    """One message."""
    turn = await player.act(observation, info)
    assert turn is not None
    return turn


def ask(stub: Stub, form: ToolFormat | None = None) -> Turn:
    """The first message of an episode."""
    player = model(stub)
    try:
        return run(act(actor(player, form)))
    finally:
        player.close()


def test_a_reply_becomes_a_turn(stub: Stub) -> None:
    """The text is the model's own; the request has the messages, the name and no streaming."""
    stub.say("hello")
    turn = ask(stub)
    assert (turn, turn.finish_reason, turn.stop_string) == ("hello", "stop", "")
    assert stub.paths == ["/v1/chat/completions"]
    assert stub.bodies[0]["messages"] == START["messages"]
    assert stub.bodies[0]["model"] == "m"
    assert stub.bodies[0]["stream"] is False
    assert stub.bodies[0]["stop"] == list(Hermes().stop)
    assert "tools" not in stub.bodies[0]


def test_the_conversation_grows_by_both_sides(stub: Stub) -> None:
    """The next request holds the model's message and the observation as the user's."""
    stub.say("one")
    stub.say("two")
    player = model(stub)
    episode = actor(player)

    async def both() -> None:
        await act(episode)
        await act(episode, "<tool_response>2</tool_response>", {"messages": [{"role": "tool"}]})

    run(both())
    player.close()
    assert stub.bodies[1]["messages"][2:] == [
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "<tool_response>2</tool_response>"},
    ]


def test_429_and_500_are_tried_again(stub: Stub) -> None:
    """Two bad replies, then a good one: the episode goes on."""
    stub.reply(429, "slow down", Retry_After="0")
    stub.reply(503, "loading")
    stub.say("at last")
    assert ask(stub) == "at last"
    assert len(stub.bodies) == 3


def test_five_hundreds_without_end_are_a_failure_of_the_machine(stub: Stub) -> None:
    """After the last attempt the episode fails with kind "model", and the reply is told."""
    for _ in range(QUICK.attempts):
        stub.reply(500, "out of order")
    with pytest.raises(RuntimeFailure, match="status 500: out of order") as caught:
        ask(stub)
    assert caught.value.kind == "model"
    assert len(stub.bodies) == QUICK.attempts


def test_what_cannot_get_better_is_not_tried_again(stub: Stub) -> None:
    """A wrong key or name fails at once."""
    stub.reply(401, "no such key")
    with pytest.raises(RuntimeFailure, match="401"):
        ask(stub)
    assert len(stub.bodies) == 1


@pytest.mark.parametrize(
    "garbage",
    ["{", "[]", '{"choices": []}', '{"choices": [{"message": 3}]}', '{"error": "x"}', "[" * 9999],
)
def test_a_reply_that_is_no_completion_is_tried_again(stub: Stub, garbage: str) -> None:
    """Malformed JSON of a proxy does not end the episode."""
    stub.reply(200, garbage)
    stub.say("fine")
    assert ask(stub) == "fine"


def test_a_server_that_is_gone_is_a_failure_of_the_machine() -> None:
    """A refused connection is tried again, then the episode fails."""
    player = Model("http://127.0.0.1:9", "m", retries=Retries(attempts=2, first_s=0.01))
    with pytest.raises(RuntimeFailure, match="no reply") as caught:
        run(act(actor(player)))
    assert (caught.value.kind, caught.value.reason) == ("model", "connection refused")
    player.close()


def test_a_message_cut_by_the_length_limit_says_so(stub: Stub) -> None:
    """finish_reason "length" reaches the environment."""
    stub.say("<tool_call>{", finish_reason="length")
    assert ask(stub).finish_reason == "length"


def test_a_conversation_that_is_too_long_is_the_agents_own(stub: Stub) -> None:
    """The episode ends as cut by length; it is not a failure of the machine."""
    stub.reply(400, {"error": {"message": "This model's maximum context length is 4096 tokens"}})
    turn = ask(stub)
    assert (turn, turn.finish_reason) == ("", "length")


@pytest.mark.parametrize("told", [{"stop_reason": "</python>"}, {"matched_stop": "</python>"}, {}])
def test_t06_a_stop_string_that_was_eaten_is_told(stub: Stub, told: dict[str, str]) -> None:
    """T06: where the server says which, where it does not, and the history holds it whole."""
    stub.say("<python>print(1)", **told)
    stub.say("done")
    player = model(stub)
    form = Tags(tags={"python": ("python", "code"), "answer": ("submit", "answer")})
    episode = actor(player, form)

    async def both() -> Turn:
        first = await act(episode)
        await act(episode, "1")
        return first

    turn = run(both())
    player.close()
    assert turn.stop_string == "</python>"
    assert [call.name for call in form.parse(turn, (PYTHON,)).calls] == ["python"]
    assert stub.bodies[1]["messages"][2]["content"] == "<python>print(1)</python>"


def test_a_reasoning_parser_does_not_hide_the_thought(stub: Stub) -> None:
    """The thought stands in the turn, as the model wrote it, but is not sent back."""
    stub.say("4", message={"reasoning_content": "2+2"})
    assert ask(stub) == "<think>2+2</think>\n4"


def test_tool_calls_of_the_openai_format(stub: Stub) -> None:
    """Tools go out as schemas, calls come back as the format's action, answers carry the ids."""
    calls = [
        {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "python", "arguments": '{"code": "1"}'},
        }
        for number in range(2)
    ]
    stub.say(None, finish_reason="tool_calls", message={"tool_calls": calls})
    stub.say("done")
    player = model(stub)
    form = Openai()
    episode = actor(player, form)

    async def both() -> Turn:
        first = await act(episode)
        result = {"role": "tool", "content": "2", "tool_call_id": "c0"}
        await act(episode, "2", {"messages": [result]})
        return first

    turn = run(both())
    player.close()
    parsed = form.parse(turn, (PYTHON,))
    assert [(call.name, call.id) for call in parsed.calls] == [("python", "c0"), ("python", "c1")]
    assert turn.finish_reason == "stop"
    assert stub.bodies[0]["tools"][0]["function"]["name"] == "python"
    assert [message["role"] for message in stub.bodies[0]["messages"]] == ["user"]
    assert stub.bodies[1]["messages"][-2:] == [
        {"role": "tool", "tool_call_id": "c0", "content": "2"},
        {"role": "tool", "tool_call_id": "c1", "content": "not run"},
    ]


def native(name: str, arguments: Any) -> dict[str, Any]:
    """One of a message's ``tool_calls``."""
    function = {"name": name, "arguments": arguments}
    return {"id": "c0", "type": "function", "function": function}


@pytest.mark.parametrize("arguments", ['{"code": "print(1)"}', {"code": "print(1)"}])
@pytest.mark.parametrize("content", [None, "", "Let me see."])
def test_calls_that_the_endpoint_took_out_are_written_back(
    stub: Stub, content: str | None, arguments: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A text format reads them as its own; the way to ask for them is told once."""
    for _ in range(2):
        stub.say(
            content,
            finish_reason="tool_calls",
            message={"tool_calls": [native("python", arguments)]},
        )
    player = model(stub)
    for _ in range(2):
        turn = run(act(actor(player)))
        parsed = Hermes().parse(turn, (PYTHON,))
        assert [(c.name, c.arguments) for c in parsed.calls] == [("python", {"code": "print(1)"})]
        assert turn.startswith(content or "<tool_call>")
        assert turn.finish_reason == "stop"
    player.close()
    assert len(caplog.records) == 1
    assert "--format openai" in caplog.text


@pytest.mark.parametrize(
    "calls",
    [[{}], [3], [native("python", "{")], [native("python", [1])], [{"function": {"name": 3}}]],
)
def test_calls_that_cannot_be_read_are_shown_as_they_came(stub: Stub, calls: list[Any]) -> None:
    """The format then tells the agent that it made no readable call; nothing is dropped."""
    stub.say(None, message={"tool_calls": calls})
    turn = ask(stub)
    assert json.loads(turn) == calls
    assert not Hermes().parse(turn, (PYTHON,)).calls


def test_a_call_in_the_text_is_not_made_twice(stub: Stub) -> None:
    """Some endpoints leave the text as it was and tell the calls beside it."""
    text = '<tool_call>{"name": "python", "arguments": {"code": "1"}}</tool_call>'
    stub.say(text, message={"tool_calls": [native("python", '{"code": "1"}')]})
    assert ask(stub) == text


def test_the_key_goes_out_and_nowhere_else(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPENAI_API_KEY is sent as a bearer; a reply that quotes it is not repeated."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    stub.reply(401, "bad key sk-secret")
    with pytest.raises(RuntimeFailure) as caught:
        ask(stub)
    assert stub.headers[0]["Authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in str(caught.value)


def test_lone_surrogates_survive_the_way_back(stub: Stub) -> None:
    """A model's text is sent back whatever characters it has."""
    stub.say("\ud800")
    stub.say("b")
    player = model(stub)
    episode = actor(player)

    async def both() -> None:
        await act(episode)
        await act(episode, "next")

    run(both())
    player.close()
    assert stub.bodies[1]["messages"][2]["content"] == "\ud800"


def test_many_episodes_wait_at_once(stub: Stub) -> None:
    """Under a loop 12 requests are on their way before the first reply is read."""
    for number in range(12):
        stub.say(str(number))
    player = model(stub)
    loop = Loop()
    said: list[str] = []
    for _ in range(12):
        loop.spawn(act(actor(player)), lambda turn, error: said.append(turn or repr(error)))
    assert said == []
    until = time.monotonic() + 30.0
    while len(said) < 12 and time.monotonic() < until:
        loop.pump(1.0)
    loop.close()
    player.close()
    assert sorted(said, key=int) == [str(number) for number in range(12)]


def waits(stub: Stub, retries: Retries) -> list[float]:
    """The pauses that a failing request asks its driver for, none of them waited."""
    player = Model(stub.url, "m", retries=retries, timeout_s=5.0)
    coroutine = player.complete({"messages": []})
    found: list[float] = []
    try:
        request = coroutine.send(None)
        while True:
            if isinstance(request, Sleep):
                found.append(request.seconds)
                request = coroutine.send(None)
            else:
                request = coroutine.send(request.perform())
    except (StopIteration, RuntimeFailure):
        return found
    finally:
        player.close()


def test_the_pauses_double_and_are_spread(stub: Stub) -> None:
    """Each pause lies between half of the doubled time and all of it, up to the longest."""
    for _ in range(5):
        stub.reply(500)
    found = waits(stub, Retries(attempts=5, first_s=1.0, longest_s=3.0))
    assert len(found) == 4
    for pause, most in zip(found, [1.0, 2.0, 3.0, 3.0], strict=True):
        assert most / 2 <= pause <= most


def test_retry_after_is_honoured(stub: Stub) -> None:
    """As seconds and as a date; one that asks for too long fails the episode at once."""
    stub.reply(429, "", Retry_After="7")
    stub.reply(429, "", Retry_After=email.utils.formatdate(time.time() + 9.0, usegmt=True))
    stub.reply(429, "", Retry_After="100000")
    found = waits(stub, Retries(attempts=9, first_s=0.01, longest_s=30.0))
    assert found[0] == 7.0
    assert 6.0 < found[1] <= 9.0
    assert len(found) == 2


@pytest.mark.parametrize("value", ["", "soon", "nan", "inf", "-3"])
def test_a_senseless_retry_after_is_none(value: str) -> None:
    """Neither a wait without end nor an error."""
    assert read_reply(429, {"Retry-After": value}, b"").retry_after_s == 0.0


@pytest.mark.parametrize(
    "spec",
    [
        *("m", "http://x", "http://x#", "ftp://x#m", "#m", "http://u:p@x#m"),
        *("http://[::1#m", "http://h:port#m", "http://h:99999999#m"),
    ],
)
def test_what_is_no_model_is_refused(spec: str) -> None:
    """URL#NAME, http or https, no password in it."""
    with pytest.raises(UsageError):
        Model.parse(spec)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/", "http://h:1/v1/chat/completions"),
        ("https://h/api/v3", "https://h/api/v3/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
    ],
)
def test_the_address_may_be_short(url: str, wanted: str) -> None:
    """With or without /v1 and /chat/completions."""
    assert Model(url, "m").url == wanted
