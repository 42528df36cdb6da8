"""What several front ends share: mechanics, never a rule of one document. One concept a module."""
