"""Language models, asked through their providers' own clients."""

from harness.world.providers.access import Access
from harness.world.providers.asking import Providers
from harness.world.providers.failures import is_down

__all__ = ["Access", "Providers", "is_down"]
