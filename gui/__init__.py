"""Plimsoll's window: the rooms a person can be in."""
