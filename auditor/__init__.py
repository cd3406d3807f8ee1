"""Measures how much an LLM's score depends on the wrapper around the question."""

__version__ = "0.1.0"
