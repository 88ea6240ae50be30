"""Jars of other projects: pinned in lock files, fetched once, checked before every use."""
