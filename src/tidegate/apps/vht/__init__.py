"""The vertical Hoeffding tree: a decision tree that is learned from a stream (MST section IV-A)."""
