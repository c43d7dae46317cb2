"""Python classes of Lamina's dialects, generated from their ODS."""
