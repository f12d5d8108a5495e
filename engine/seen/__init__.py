"""The runtimes of this computer: found, asked what they hold, and put to work on request."""
