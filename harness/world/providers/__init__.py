"""Language models, called through their providers' own clients."""

from harness.world.providers.access import Access
from harness.world.providers.failures import is_down
from harness.world.providers.providers import Providers

__all__ = ["Access", "Providers", "is_down"]
