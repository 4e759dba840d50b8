"""The connection to a Ray cluster, and the findings where there is none."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Generator
from typing import Any

from anyshape.findings import Finding, UsageError

_ATTEMPTS = "RAY_gcs_server_port_wait_time_s"
_START_OR_LOCAL = "ray start --head, or --ray local"
_ANSWER_S = 5.0  # for a connection, and as long for the first bytes of a server
# What opens a connection of HTTP/2: words of the protocol, and an empty frame of settings. Ray speaks gRPC, which is HTTP/2.
_PREFACE, _SETTINGS, _FRAME = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]), 4, 9


@contextlib.contextmanager
def connected(address: str) -> Generator[Any]:
    """Ray, connected to the cluster; a connection that was there before stays."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        what = "--ray needs Ray, which is not installed here."
        raise UsageError(no_cluster(what, fix="pip install anyshape[ray]")) from error
    if address.startswith("ray://"):
        what = f"{address!r} is the address of a Ray client, over which no files can be streamed."
        raise UsageError(no_cluster(what, fix="run the command on a node of the cluster: --ray, or --ray HOST:6379"))
    if ray.is_initialized():
        yield ray
        return
    _check_answers(address)
    try:
        with _keeping_handlers(), _trying_once(address):
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        what = f"there is no Ray cluster at {address!r}."
        raise UsageError(no_cluster(what, first_line(error), _START_OR_LOCAL)) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Raise UsageError where nothing answers at the address: Ray itself tries for five minutes."""
    place = _place_of(address)
    if place is None:
        return
    host, _, port = place.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S) as connection:
            if os.environ.get("RAY_USE_TLS", "0") in ("1", "true"):  # a server that expects TLS says nothing to this
                return
            connection.sendall(_PREFACE)
            head = connection.recv(_FRAME)
    except (OSError, ValueError) as error:
        what = f"there is no Ray cluster at {address!r}."
        raise UsageError(no_cluster(what, f"{place} does not answer: {error}.", _START_OR_LOCAL)) from error
    if head[3:4] != bytes([_SETTINGS]):
        what = f"there is no Ray cluster at {address!r}."
        raise UsageError(no_cluster(what, f"what answers at {place} is no Ray.", _START_OR_LOCAL))


def _place_of(address: str) -> str | None:
    """`HOST:PORT` of a cluster that is said to run; None for one that is to be started, or that Ray has to find."""
    if address == "auto":
        try:
            from ray._private.services import canonicalize_bootstrap_address

            return str(canonicalize_bootstrap_address(address) or "") or None
        except Exception:  # not a public function: another version of Ray may lack it
            return None
    return None if address == "local" else address


@contextlib.contextmanager
def _trying_once(address: str) -> Generator[None]:
    """One attempt to connect in the place of twenty, unless the user has set their number: something answers there."""
    if address == "local" or _ATTEMPTS in os.environ:  # for a cluster that is started, the time that this may take
        yield
        return
    os.environ[_ATTEMPTS] = "1"
    try:
        yield
    finally:
        del os.environ[_ATTEMPTS]


@contextlib.contextmanager
def _keeping_handlers() -> Generator[None]:
    """Ray gives SIGTERM a handler of its own; ours ends the work in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def first_line(error: BaseException) -> str:
    """The kind of an error and the first line of its message; of what a task raised, not of Ray's report about it."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines()
    return ": ".join([type(cause).__name__, *lines[:1]])


def no_cluster(what: str, why: str = "", fix: str = "") -> Finding:
    return Finding(code="AS546", name="ray-cluster", what=what, why=why, fix=fix, is_fix_untried=True)
