"""Models that are learned from measurements and shared by every policy that needs them."""
