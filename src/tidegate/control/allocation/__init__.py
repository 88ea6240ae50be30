"""Allocation of cores to stations (DRS), and the DRS policies."""
