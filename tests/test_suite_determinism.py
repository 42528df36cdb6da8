"""The same graph, input, world and seed give the same trace: in other processes, under other hash seeds, offline.

`tests/test_digests.py` compares a process with the hash seed it happens to have.
"""

import subprocess

import pytest

from tests.test_digests import digests, written

OFFLINE = ("unshare", "--map-root-user", "--net")


@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_digests_are_the_same_under_another_hash_seed(hash_seed: str) -> None:
    assert digests(environment={"PYTHONHASHSEED": hash_seed}) == written()


def test_digests_are_the_same_with_the_network_cut() -> None:
    if subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let a process leave the network (unshare --net)")
    assert digests(OFFLINE, {"PYTHONHASHSEED": "0"}) == written()
