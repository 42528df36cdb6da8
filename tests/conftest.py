"""What all tests share."""

from hypothesis import settings

pytest_plugins = ["pytester"]

# A busy machine is no fault of what is tested.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
