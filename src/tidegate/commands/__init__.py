"""The commands of `tidegate`, one file each; `cli.py` puts them together."""
