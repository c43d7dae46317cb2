"""Packages: what is made of a program for CUDA, and run by lamina_runtime. docs/package.md describes the format."""
