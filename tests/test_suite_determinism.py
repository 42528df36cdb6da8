"""The same graph, input, world and seed give the same trace: in other processes, under other hash seeds, offline.

`tests/test_digests.py` runs the suites under another hash seed than this, and with the network; and
`tests/dialects/conftest.py` the cases of the dialects under that of pytest, which is any.
"""

import subprocess

import pytest

from tests.test_digests import digests, written

OFFLINE = ("unshare", "--map-root-user", "--net")


def test_digests_are_the_same_under_a_fixed_hash_seed_with_the_network_cut() -> None:
    if subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let a process leave the network (unshare --net)")
    found = digests(["scenarios"], prefix=OFFLINE, environment={"PYTHONHASHSEED": "0"})
    assert found == written(["scenarios"])
