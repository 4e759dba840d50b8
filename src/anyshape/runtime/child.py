"""The child process: `python -m anyshape.runtime.child`, which loads one model and runs it when a request comes.

It may die at any moment; that is what it is for. It ends at once when its parent does, even in the middle of a run.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, BinaryIO

from anyshape.runtime.child_messages import (
    Ask,
    Message,
    RuntimeFailed,
    RuntimeRejected,
    read_message,
    remote_operator,
    write_message,
)
from anyshape.runtime.runtimes import AnySession, runtime_called


def main() -> None:
    """Handle messages until the parent closes our stdin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides
    replies = _take_over_stdout()
    requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
    reader = threading.Thread(target=_read_requests, args=(sys.stdin.buffer, requests), daemon=True)
    reader.start()

    def ask(message: Message) -> Message:
        write_message(replies, message)
        return requests.get()

    session = _load(requests.get(), replies, ask)
    while session is not None:
        write_message(replies, _reply(session, requests.get()))


def _take_over_stdout() -> BinaryIO:
    """Our own way to the parent; whatever a library prints goes to stderr and cannot spoil a message."""
    private = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return os.fdopen(private, "wb")


def _read_requests(stream: BinaryIO, requests: queue.SimpleQueue[Message]) -> None:
    # A thread of its own: the main one may be deep inside a run when the parent goes.
    while (message := read_message(stream)) is not None:
        requests.put(message)
    os._exit(0)


def _load(message: Message, replies: BinaryIO, ask: Ask) -> AnySession | None:
    limit_memory(message.facts["memory_limit"])
    try:
        session = runtime_called(message.facts["runtime"]).open(
            message.facts["path"],
            {name: remote_operator(name, ask) for name in message.facts["operators"]},
            threads=message.facts["threads"],
            optimize=message.facts["optimize"],
            providers=message.facts["providers"],
        )
    except RuntimeRejected as error:
        write_message(replies, Message("rejected", {"message": error.message, "unsupported": error.unsupported}))
        return None
    facts: Mapping[str, Any] = {
        "inputs": [asdict(info) for info in session.inputs],
        "outputs": [asdict(info) for info in session.outputs],
    }
    write_message(replies, Message("loaded", facts))
    return session


def _reply(session: AnySession, message: Message) -> Message:
    try:
        outputs = session.run(message.arrays)
    except RuntimeFailed as error:
        return Message("failed", {"message": error.message, "memory": error.memory})
    # Positions, not names: a file may name two outputs alike, and the order is what counts.
    return Message("done", {}, {str(position): array for position, array in enumerate(outputs)})


def limit_memory(limit: int | None) -> None:
    """Cap the address space of this process, where the system can; allocations beyond it then fail cleanly."""
    if limit is None:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    capped = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (capped, hard))


if __name__ == "__main__":
    main()
