"""The network is closed during a scenario."""

import socket

import pytest

from harness.world.network import NetworkClosed, closed_network, refused_attempts


def test_the_network_is_closed_during_a_scenario_and_open_after_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with closed_network(), pytest.raises(NetworkClosed, match="closed during a scenario"):
            socket.create_connection(address)
        socket.create_connection(address).close()


def test_an_attempt_is_told_with_its_address_and_what_to_do_about_it() -> None:
    asked: list[str] = []
    with closed_network(lambda: asked.append("once")):
        with pytest.raises(NetworkClosed):
            socket.getaddrinfo("db.example", 5432)
        (told,) = refused_attempts()
    assert "socket.getaddrinfo db.example:5432: stub the tool that makes it; " in told
    assert "a database another address in `env`, such as `:memory:`" in told
    assert asked == ["once"]
    assert refused_attempts() == []


def test_names_are_not_looked_up_either() -> None:
    with closed_network(), pytest.raises(OSError, match="closed"):
        socket.getaddrinfo("localhost", 80)
