"""What all tests share."""

import os

from hypothesis import settings

pytest_plugins = ["pytester"]

# A busy machine is no fault of what is tested.
settings.register_profile("unhurried", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "unhurried"))
