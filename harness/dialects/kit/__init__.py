"""Mechanics that several front ends share, one concept per module. Rules of one dialect's document are not here."""
