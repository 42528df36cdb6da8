"""Language models, called through their providers' own clients."""

from harness.world.providers.access import Access
from harness.world.providers.providers import Providers, is_down

__all__ = ["Access", "Providers", "is_down"]
