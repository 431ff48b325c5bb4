"""A service started as a process of its own, as `planner serve` starts it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx


class Server:
    """A running service; its log goes to a file."""

    def __init__(
        self,
        url: str,
        log: Path,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port or free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.log = log
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PLANNER_")}
        env = {
            **inherited,
            "PLANNER_DATABASE_URL": url,
            "PLANNER_PORT": str(self.port),
            **(environment or {}),
        }
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from planner.cli import main; main()", "serve"],
                env=env,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=log.parent,
            )

    def wait(self, seconds: float = 30) -> Server:
        """Return once the service is ready."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.base}/health/ready", timeout=5).status_code == 200:
                    return self
            time.sleep(0.05)
        raise AssertionError(f"the service did not start:\n{self.text()}")

    def text(self) -> str:
        """The log so far."""
        return self.log.read_text("utf-8", "replace")

    def signal(self, number: int) -> None:
        """Signal the service and its workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End the service as a power cut would."""
        self.signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> int:
        """Ask the service to end; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                return self.process.wait(15)
            finally:
                self.signal(signal.SIGKILL)
        return self.process.returncode


@contextlib.contextmanager
def serving(url: str, log: Path, **options: Mapping[str, str]) -> Iterator[Server]:
    """A service that is ready."""
    server = Server(url, log, environment=options.get("environment"))
    try:
        yield server.wait()
    finally:
        server.stop()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
