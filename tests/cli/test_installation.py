"""A missing or outdated package is named, with the command that installs it."""

import importlib.metadata
from importlib.metadata import PackageNotFoundError

import pytest

from harness.cli.output import run_guarded
from harness.installation import why_not_importable


def broken(*, name: str = "numpy") -> None:
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """Installed versions of the packages that a test sets; None: not installed."""
    said: dict[str, str | None] = {}
    real = importlib.metadata.version

    def version(name: str) -> str:
        found = said.get(name, "") if name in said else real(name)
        if found is None:
            raise PackageNotFoundError(name)
        return str(found)

    monkeypatch.setattr("harness.installation.version", version)
    return said


def test_a_missing_package_is_named(
    installed: dict[str, str | None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed |= {"numpy": None, "click": "8.0.1"}
    assert run_guarded(broken) == 3
    error = capsys.readouterr().err
    assert "numpy is missing" in error
    assert "click is 8.0.1, and >=8.1 is needed" in error
    assert "\n    pip install 'click>=8.1' 'numpy>=1.26'\n" in error
    assert "broke" not in error


def test_a_package_missing_from_an_older_installation_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(lambda: broken(name="brand_new.part")) == 3
    error = capsys.readouterr().err
    assert "the package of the module 'brand_new' is not installed" in error
    assert "install agent-scenarios again" in error


def test_a_missing_module_of_the_harness_itself_is_a_defect() -> None:
    assert why_not_importable(ModuleNotFoundError("No module", name="harness.gone")) == ""
