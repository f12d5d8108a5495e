"""Stage: budget -> verdict, limits and the smallest changes that fit."""
