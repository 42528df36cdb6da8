import pytest

from harness.scenario.document_expect import CHECKS
from harness.scenario.outcome import CheckResult, Observation, Origin, Outcome
from tests.report.fixtures import MakeCheck, MakeOutcome

NODES = ["classify", "billing", "tech"]


@pytest.fixture
def outcome() -> MakeOutcome:
    def make(verdict: str = "passed", **fields: object) -> Outcome:
        observed = Observation(
            path=["classify", "billing"], latency={"total": 0.5, "nodes": {"classify": 0.5}}
        )
        for name in [name for name in fields if hasattr(observed, name)]:
            setattr(observed, name, fields.pop(name))
        made = Outcome(
            suite="triage.scenario.yaml",
            scenario="a double charge",
            manifest="triage.yaml",
            dialect="sherma",
            agent="triage",
            observed=observed,
            verdict=verdict,  # type: ignore[arg-type]
            score=1.0 if verdict == "passed" else 0.0,
        )
        for name, value in fields.items():
            assert hasattr(made, name), name
            setattr(made, name, value)
        return made

    return make


@pytest.fixture
def failed_check() -> MakeCheck:
    def make(name: str = "path", message: str = "expected b, was c", **fields: object) -> CheckResult:
        values = {"passed": False, "score": 0.0, "weight": 1.0, "expected": ["b"], "actual": ["c"]} | fields
        check = CHECKS.get(name.rpartition(": ")[2])
        origin = check.origin if check is not None else Origin.RESULT
        return CheckResult(name=name, message=message, origin=origin, **values)  # type: ignore[arg-type]

    return make
