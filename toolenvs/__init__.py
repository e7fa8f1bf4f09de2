"""Toolenvs."""
