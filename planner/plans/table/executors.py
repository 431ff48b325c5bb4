"""Where parts are made: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

from planner.errors import InvalidInput

PER_WORKER = 2
"""Parts handed out for each worker, so that none waits for the next [-]."""
RETRIES = 3
"""Times that a part is tried again whose worker was lost [-]."""
TIMEOUT_S = 10.0
"""Time within which a scheduler has to answer [s]."""


class NoCluster(InvalidInput):
    """A cluster that cannot be reached, or one that is asked for without the extra `cluster`."""


@contextmanager
def local(workers: int) -> Iterator[tuple[Executor | None, int]]:
    """Yield an executor of processes and the parts to hand it at once; one needs none."""
    if workers == 1:
        yield None, 1
        return
    context = multiprocessing.get_context("spawn")  # a progress bar has threads: no fork
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield pool, PER_WORKER * workers


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Yield an executor of a Dask cluster's workers and the parts to hand it at once.

    `address` is that of its scheduler, as tcp://host:port. The scheduler gives the parts of a
    worker that is lost to others. Raises NoCluster.
    """
    try:
        from distributed import Client
    except ImportError as error:
        text = "cluster: Dask is not installed; accepted: the extra `cluster`"
        raise NoCluster(text) from error
    try:
        client = Client(address, timeout=TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        text = f"cluster: no scheduler at {address}; accepted: an address as tcp://host:8786"
        raise NoCluster(text) from error
    with client:
        threads = sum(client.nthreads().values())
        yield client.get_executor(pure=False, retries=RETRIES), PER_WORKER * max(1, threads)
