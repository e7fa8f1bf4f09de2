"""Attacks on the channel: answers that are forged, guessed, doubled or too large.

Code can always fake its own sandbox's result, since it runs in the process that gives it. What
must hold is that it reaches no other sandbox, and no later call of the worker.
"""

from __future__ import annotations

from tests.attacks.attack import Attack

_NONCE = "each request has a nonce; a wrong or second answer ends the sandbox"

FORGING = (
    Attack("answer-forged", _NONCE, "os.write(3, b'x' * 10)", ends=("killed",), lost=True),
    Attack(
        "answers-guessed",
        _NONCE,
        "for n in range(99): os.write(3, n.to_bytes(8, 'big') + b'\\0\\0')",
        ends=("killed",),
        lost=True,
    ),
    Attack(
        "answer-torn",
        _NONCE,
        "os.write(3, b'xxx')\nwhile True: pass",
        ends=("killed", "timeout"),
        lost=True,
        timeout_s=0.5,
    ),
    Attack(
        "nonce-taken-from-a-frame",
        "it fakes its own call and is ended at the next one",
        "frame = sys._getframe()\nwhile 'nonce' not in frame.f_locals: frame = frame.f_back\n"
        "os.write(3, frame.f_locals['nonce'] + b'\\0\\0'); time.sleep(0.2)",
        ends=("ok", "killed"),
        lost=None,
        then="killed",
    ),
    Attack(
        "answer-before-the-question",
        _NONCE,
        "background(lambda: [time.sleep(0.1), os.write(3, b'y' * 10)]); time.sleep(0.3)",
        ends=("ok", "killed"),
        lost=None,
        then="killed",
    ),
    Attack(
        "channel-flooded",
        "no more is read than one answer",
        "while True: os.write(3, bytes(1 << 16))",
        ends=("killed", "timeout"),
        lost=True,
        timeout_s=1.0,
    ),
    Attack(
        "descriptors-sent",
        "the client takes bytes only",
        "s = socket.socket(fileno=os.dup(3))\n"
        "for _ in range(200): socket.send_fds(s, [b'x'], [0] * 100)",
        ends=("killed", "raised", "timeout"),
        lost=True,
        timeout_s=1.0,
    ),
    Attack(
        "channel-read-by-a-copy",
        "what is lost is its own: its silence ends at the timeout",
        "def listen():\n    while True: os.read(3, 1 << 16)\nbackground(listen); time.sleep(0.1)",
        ends=("ok", "killed"),
        lost=None,
    ),
    Attack(
        "channel-shut",
        "it ends the sandbox",
        "socket.socket(fileno=os.dup(3)).shutdown(2)",
        ends=("exited", "killed"),
        lost=True,
    ),
    Attack(
        "channel-held-open",
        "the supervisor ends the channel for all who hold it",
        "if os.fork(): os._exit(0)\ntime.sleep(99)",
        ends=("exited",),
        lost=True,
    ),
    Attack(
        "channel-s-flags",
        "the client's end has flags of its own",
        "fcntl.fcntl(3, fcntl.F_SETFL, os.O_NONBLOCK)",
        ends=("ok", "exited"),
        lost=None,
    ),
)
