"""Shared parts of the window; knows no room."""
