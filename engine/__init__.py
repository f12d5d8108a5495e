"""Plimsoll's sizing engine. Knows no Qt; usable from a script."""
