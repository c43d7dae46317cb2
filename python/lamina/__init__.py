"""Lamina."""
