"""The connection to a cluster, one for each address in a process."""

from __future__ import annotations

import atexit
import logging
from contextlib import suppress
from typing import Any, Final

from harness.errors import ClusterUnreachable
from harness.settings import LOCAL_CLUSTER
from harness.source.imports import import_extra

PATIENCE_S: Final = 10.0
"""Real seconds that the scheduler may take to answer first."""
_NOBODY: Final = "127.0.0.1:0"


_clients: Final[dict[str, Any]] = {}
"""The clients of this process, by address."""


def connected(address: str) -> Any:
    """Return the Dask client of a cluster, which stays connected until this process ends.

    Raises:
        ExtraMissing: Dask is not installed.
        ClusterUnreachable: the scheduler does not answer.
    """
    if address not in _clients:
        _clients[address] = _connect(address)
    return _clients[address]


def _connect(address: str) -> Any:
    distributed = import_extra("distributed", "cluster", "to run on a cluster")
    for name in [each for each in logging.root.manager.loggerDict if each.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the command itself says what is wrong
    try:
        if address.startswith(LOCAL_CLUSTER):
            at: Any = _local(distributed, int(address.removeprefix(LOCAL_CLUSTER)))
        else:
            at = address
        client = distributed.Client(at, timeout=PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        text = f"the scheduler {address} does not answer: {error or type(error).__name__}"
        raise ClusterUnreachable(text) from error
    atexit.register(_close, client)
    return client


def disconnect(client: Any) -> None:
    """Close the connection to a scheduler that is gone, to which Dask would connect again and again."""
    for address in [address for address, each in _clients.items() if each is client]:
        del _clients[address]
    _close(client)


def _local(distributed: Any, workers: int) -> Any:
    """Return a cluster in this process. Its workers are threads: scenarios run in processes beside them anyway."""
    cluster = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=False,  # so that no port is open to the other users of the machine
        dashboard_address=_NOBODY,
        worker_dashboard_address=_NOBODY,
        silence_logs=logging.CRITICAL,
    )
    for server in (cluster.scheduler, *cluster.workers.values()):
        server.http_server.stop()
    return cluster


def _close(client: Any) -> None:
    with suppress(Exception):
        client.close(timeout=1)
        if client.cluster is not None:
            client.cluster.close(timeout=1)
