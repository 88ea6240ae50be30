"""Rolling Flight Distances: flights that will soon be close to each other (MST section IV-A)."""
