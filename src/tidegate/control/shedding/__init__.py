"""How much to shed, and of which rows (Overload)."""
