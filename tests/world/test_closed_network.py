"""The network is closed during a scenario."""

import socket

import pytest

from harness.world.network import NetworkClosed, closed_network


def test_the_network_is_closed_during_a_scenario_and_open_after_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with closed_network(), pytest.raises(NetworkClosed, match="closed during a scenario"):
            socket.create_connection(address)
        socket.create_connection(address).close()


def test_names_are_not_looked_up_either() -> None:
    with closed_network(), pytest.raises(OSError, match="closed"):
        socket.getaddrinfo("localhost", 80)
