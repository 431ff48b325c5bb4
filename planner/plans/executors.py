"""Where work is done: in this process, in others of this machine, or by a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from planner.errors import InvalidInput
from planner.plans.progress import tracked

if TYPE_CHECKING:
    from concurrent.futures import Executor

Result = TypeVar("Result")

PER_WORKER = 2
"""Pieces handed out for each worker, so that none waits for the next [-]."""
RETRIES = 3
"""Times that a piece is tried again whose worker was lost [-]."""
TIMEOUT_S = 10.0
"""Time within which a scheduler has to answer [s]."""


class NoCluster(InvalidInput):
    """A cluster that cannot be reached, or one that is asked for without the extra `cluster`."""


def mapped(
    executor: Executor | None, function: Callable[..., Result], *columns: Sequence[Any]
) -> list[Result]:
    """Return a function's result for every row of the columns, in order.

    Rows are worked on by an executor where there is one; its function, arguments and results must
    be such that they can be pickled.
    """
    rows = list(zip(*columns, strict=True))
    if executor is None:
        return [function(*row) for row in tracked(rows, len(rows))]
    futures = [executor.submit(function, *row) for row in rows]
    return [future.result() for future in tracked(futures, len(futures))]


def chosen(
    workers: int, address: str | None = None
) -> AbstractContextManager[tuple[Executor | None, int]]:
    """Return the executor of a cluster where there is an address, or else of `workers` processes.

    Comes with the pieces to hand it at once.
    """
    return cluster(address) if address else local(max(1, workers))


@contextmanager
def local(workers: int) -> Iterator[tuple[Executor | None, int]]:
    """Yield an executor of processes and the pieces to hand it at once; one needs none."""
    if workers == 1:
        yield None, 1
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")  # a progress bar has threads: no fork
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield pool, PER_WORKER * workers


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Yield an executor of a Dask cluster's workers and the pieces to hand it at once.

    `address` is that of its scheduler, as tcp://host:port. The scheduler gives the pieces of a
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
