"""Which cores of which nodes (Elasticutor 4.2)."""
