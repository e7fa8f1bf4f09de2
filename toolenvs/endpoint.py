"""``Model``: a policy that asks an OpenAI-compatible endpoint for each message."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from toolenvs.drivers import Loop, Request, Sleep
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.policies import Actor, Scene
from toolenvs.spaces import MAX_CHARS
from toolenvs.types import FINISH_REASONS, Message, Task, ToolCall, Turn
from toolenvs.web.retrying import RETRIED, Retries, lost_reason, retry_after_s

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
_log = logging.getLogger(__name__)

KEY_VARIABLE = "OPENAI_API_KEY"
_RETRIED = RETRIED | {409}
_RETRIES = Retries(attempts=6, first_s=1.0, longest_s=120.0)  # as long as a server takes to start
_TOO_LONG = ("context_length", "context length", "maximum context", "too many tokens")


class Model:
    """Any endpoint that speaks ``/v1/chat/completions`` (vLLM, SGLang, llama.cpp, OpenAI ...).

    Text formats send the tools' description in the system message and each observation as the
    user's message, which is what chat templates make of tool results. A ``native`` format, such as
    ``openai``, sends ``tools`` instead of the description, keeps ``tool_calls``, and answers each
    of them. Where an endpoint turns calls into ``tool_calls`` though a text format was asked for,
    they are written back as that format's text. The key is read from OPENAI_API_KEY and recorded
    nowhere.

    Args:
        url: the endpoint, with or without ``/v1`` and ``/chat/completions``.
        name: the model's name there.
        temperature: of sampling; the endpoint's own when None.
        max_tokens: most tokens of one message; the endpoint's own when None.
        timeout_s: seconds to wait for one reply.
        retries: what to do on 429, 5xx and lost connections; by default six requests in all, the
            waits from 1 to 120 seconds.

    Raises:
        UsageError: ``url`` is no http(s) address or ``name`` is empty.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        timeout_s: float = 600.0,
        retries: Retries | None = None,
    ) -> None:
        self.name = name
        self.url = _chat_url(url)
        if not name:
            raise UsageError("the model has no name: write URL#NAME.")
        sampling = {"temperature": temperature, "max_tokens": max_tokens}
        self._sampling = {key: value for key, value in sampling.items() if value is not None}
        self._timeout_s = timeout_s
        self._retries = retries or _RETRIES
        self._client: httpx.Client | None = None
        self._said: set[str] = set()

    @classmethod
    def parse(cls, spec: str, **options: Any) -> Model:
        """Build one from ``URL#NAME``; ``options`` are those of the class.

        Raises:
            UsageError: It is not of that form.
        """
        url, mark, name = spec.partition("#")
        if not mark or not name:
            raise UsageError(
                f"{spec!r} is no model: write URL#NAME, such as http://localhost:8000/v1#qwen3-8b."
            )
        return cls(url, name, **options)

    def start(self, task: Task, scene: Scene) -> Actor:
        return _Chat(self, scene)

    async def complete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post one request and return the first choice of the reply, trying again as told.

        Raises:
            RuntimeFailure: kind ``"model"``: no usable reply came; ``reason`` says why in brief.
            TooLongError: The conversation does not fit into the model's context.
        """
        body = {"model": self.name, "stream": False, **self._sampling, **body}
        problem = reason = ""
        for attempt in range(self._retries.attempts):
            reply = await _InThread(lambda: self._post(body))
            if reply.choice is not None:
                return reply.choice
            problem, reason = reply.problem, reply.reason
            if not reply.again or attempt + 1 == self._retries.attempts:
                break
            wait_s = max(self._retries.wait_s(attempt), reply.retry_after_s)
            if wait_s > self._retries.longest_s:
                problem += f" It asks to wait {wait_s:.0f} s."
                break
            self.say_once(
                reason, f"{self.url}: {problem}; asking up to {self._retries.attempts} times"
            )
            await Sleep(wait_s)
        raise RuntimeFailure("model", f"{self.url}: {problem}", reason=reason)

    def say_once(self, what: str, message: str) -> None:
        """Warn of ``what``, however many episodes meet it."""
        if what not in self._said:
            self._said.add(what)
            _log.warning("%s", message)

    def close(self) -> None:
        """Close the connections. More than once is harmless."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _post(self, body: Mapping[str, Any]) -> Reply:
        import httpx

        key = os.environ.get(KEY_VARIABLE, "")
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        content = json.dumps(body).encode("ascii")  # ASCII: a model's text may hold lone surrogates
        try:
            response = self._connection().post(self.url, content=content, headers=headers)
        except httpx.InvalidURL as error:
            return Reply(problem=f"no address: {error}", reason="no address")
        except httpx.HTTPError as error:
            reason = lost_reason(error)
            problem = f"no reply: {reason} ({type(error).__name__}: {error})"
            return Reply(problem=problem, reason=reason, again=True)
        reply = read_reply(response.status_code, response.headers, response.content)
        if key and key in reply.problem:
            reply = msgspec.structs.replace(reply, problem=reply.problem.replace(key, "[key]"))
        return reply

    def _connection(self) -> httpx.Client:
        if self._client is None:
            import httpx

            # Each waiting episode holds one connection, so none may queue for another's.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            timeout = httpx.Timeout(self._timeout_s, connect=min(30.0, self._timeout_s))
            self._client = httpx.Client(limits=limits, timeout=timeout)
        return self._client


class TooLongError(Exception):
    """The conversation outgrew the model's context: the agent's own doing, not a failure."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What one request gave: a choice, or a problem and whether to try again.

    ``reason`` is the problem in the few words that do not differ from one request to the next.
    """

    choice: dict[str, Any] | None = None
    problem: str = ""
    reason: str = ""
    again: bool = False
    retry_after_s: float = 0.0


def read_reply(status: int, headers: Mapping[str, str], content: bytes) -> Reply:
    """Read an HTTP reply.

    Raises:
        TooLongError: The endpoint says that the conversation is too long.
    """
    text = content[:2000].decode("utf-8", "replace").strip()
    if status != 200:
        if status in (400, 413, 422) and any(word in text.lower() for word in _TOO_LONG):
            raise TooLongError(text)
        return Reply(
            problem=f"status {status}: {text[:300] or 'no text'}",
            reason=f"status {status}",
            again=status in _RETRIED or status >= 500,
            retry_after_s=retry_after_s(headers.get("Retry-After", "")),
        )
    try:
        choice = json.loads(content)["choices"][0]
        if not isinstance(choice["message"], dict):
            raise TypeError("message is no object")
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        problem = f"a reply that is no completion ({error!r}): {text[:300]}"
        return Reply(problem=problem, reason="a reply that is no completion", again=True)
    return Reply(choice=choice)


class _Chat:
    """One episode's conversation."""

    def __init__(self, model: Model, scene: Scene) -> None:
        self._model = model
        self._scene = scene
        self._structured = bool(getattr(scene.format, "native", False))
        self._messages: list[Message] = []

    async def act(self, observation: str, info: Mapping[str, Any]) -> Turn | None:
        self._listen(observation, info)
        try:
            choice = await self._model.complete(self._body())
        except TooLongError:
            return Turn("", finish_reason="length")
        return self._structured_turn(choice) if self._structured else self._text_turn(choice)

    def _listen(self, observation: str, info: Mapping[str, Any]) -> None:
        said = info["messages"]
        if not self._messages:  # an endpoint that is told of ``tools`` needs no description
            self._messages += [m for m in said if not self._structured or m["role"] != "system"]
        elif self._structured:
            self._messages += _answers(self._messages[-1].get("tool_calls", []), said)
        else:
            self._messages.append({"role": "user", "content": observation})

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"messages": self._messages}
        if self._structured:
            functions = [msgspec.to_builtins(spec) for spec in self._scene.specs]
            body["tools"] = [{"type": "function", "function": f} for f in functions]
        elif self._scene.format.stop:
            body["stop"] = list(self._scene.format.stop)
        return body

    def _text_turn(self, choice: Mapping[str, Any]) -> Turn:
        message = choice["message"]
        content = self._with_calls(_text(message.get("content")), message.get("tool_calls"))
        thought = _thought(message)
        reason = _finish_reason(choice)
        text = f"<think>{thought}</think>\n{content}" if thought else content
        if len(text) > MAX_CHARS:
            text, reason = text[:MAX_CHARS], "length"
        eaten = self._eaten_stop(text, choice) if reason == "stop" else ""
        self._messages.append({"role": "assistant", "content": content + eaten})
        return Turn(text, finish_reason=reason, stop_string=eaten)

    def _with_calls(self, content: str, native: object) -> str:
        """The content with calls that the endpoint took out of it, as the format writes them."""
        if not isinstance(native, list) or not native or self._is_clean(Turn(content)):
            return content
        name = self._scene.format.name
        self._model.say_once(
            "tool_calls",
            f"{self._model.name} answers with tool_calls, not in the format {name!r}: they are "
            "written into its text. --format openai lets it call tools in its own way.",
        )
        calls = [_native_call(entry) for entry in native]
        try:
            written = self._scene.format.compose([call for call in calls if call is not None])
        except UsageError:  # a format that cannot express them, such as several in one message
            written = ""
        if None in calls or not written:  # as it came: the format says what is wrong with it
            written = json.dumps(native, ensure_ascii=False)
        return f"{content}\n{written}" if content else written

    def _eaten_stop(self, text: str, choice: Mapping[str, Any]) -> str:
        """The stop string that ended the message and was removed from it.

        vLLM and SGLang tell it; where it is not told, it is the first that makes a clean message
        of one that is none.
        """
        stops = list(self._scene.format.stop)
        told = choice.get("stop_reason", choice.get("matched_stop"))
        if told in stops:
            return "" if text.endswith(told) else str(told)
        if self._is_clean(Turn(text)):  # no reason given: nothing is forgiven then
            return ""
        return next((stop for stop in stops if self._is_clean(Turn(text, "stop", stop))), "")

    def _is_clean(self, turn: Turn) -> bool:
        parsed = self._scene.format.parse(turn, self._scene.specs)
        return bool(parsed.calls) and not parsed.problems

    def _structured_turn(self, choice: Mapping[str, Any]) -> Turn:
        message = choice["message"]
        kept = {"role": "assistant", "content": _text(message.get("content"))}
        if message.get("tool_calls"):
            kept["tool_calls"] = message["tool_calls"]
        self._messages.append(kept)
        thought = _thought(message)
        written = {**kept, "reasoning_content": thought} if thought else kept
        return Turn(json.dumps(written, ensure_ascii=False), finish_reason=_finish_reason(choice))


class _InThread(Request[T]):
    """Run a function that waits for the network; under a ``Loop`` on a thread of its own.

    ``drivers.Blocking`` shares a few threads among life cycles; here every episode of a rollout may
    wait for its model at once. The threads are daemons, so that an interrupted rollout ends at
    once and does not wait for replies.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function

    def perform(self) -> T:
        return self._function()

    def start(self, loop: Loop, wake: Callable[[T | None, BaseException | None], None]) -> None:
        def work() -> None:
            value: T | None = None
            error: BaseException | None = None
            try:
                value = self._function()
            except BaseException as raised:
                error = raised
            loop.call_soon_threadsafe(lambda: wake(value, error))

        threading.Thread(target=work, name="toolenvs-model", daemon=True).start()


def _native_call(entry: object) -> ToolCall | None:
    """One of a message's ``tool_calls``, None if it cannot be read."""
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    arguments = function.get("arguments") or {}
    try:
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return None
    return ToolCall(function["name"], read) if isinstance(read, dict) else None


def _chat_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # read only here: a port that is none raises
    except ValueError as error:
        raise UsageError(f"{url!r} is no address of an endpoint: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError(
            f"{url!r} is no address of an endpoint: it begins with http:// or https://."
        )
    if parts.username or parts.password:
        raise UsageError(f"put the key into {KEY_VARIABLE}, not into the address: it is recorded.")
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path = (path or "/v1") + "/chat/completions"
    return parts._replace(path=path, fragment="").geturl()


def _finish_reason(choice: Mapping[str, Any]) -> str:
    reason = _text(choice.get("finish_reason"))
    if reason in ("tool_calls", "function_call"):
        return "stop"
    return reason if reason.lower() in FINISH_REASONS else ""


def _thought(message: Mapping[str, Any]) -> str:
    """What a reasoning parser took out of the message; it is not sent back, as templates do."""
    return _text(message.get("reasoning_content") or message.get("reasoning"))


def _answers(calls: Sequence[Any], said: Sequence[Message]) -> list[Message]:
    """One tool message for each call, which endpoints insist on, also where nothing was run."""
    texts = [_text(message["content"]) for message in said]
    if not calls:
        return [{"role": "user", "content": "\n".join(texts)}]
    texts += ["not run"] * (len(calls) - len(texts))
    ids = [call.get("id", "") if isinstance(call, dict) else "" for call in calls]
    return [
        {"role": "tool", "tool_call_id": call_id, "content": text}
        for call_id, text in zip(ids, texts, strict=False)
    ]


def _text(value: object) -> str:
    """A text of a reply; some endpoints send null, or a list of parts."""
    if isinstance(value, list):
        parts = [part.get("text", "") for part in value if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return value if isinstance(value, str) else ""
