"""How much load m machines sustain, and how sure that is (MST)."""
