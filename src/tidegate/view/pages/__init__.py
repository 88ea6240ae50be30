"""Writes runs as HTML pages and SVG pictures."""
