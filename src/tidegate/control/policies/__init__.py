"""Everything that decides how many machines to have: measurement in, decision out."""
