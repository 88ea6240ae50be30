"""Queueing stations and networks of them (DRS)."""
