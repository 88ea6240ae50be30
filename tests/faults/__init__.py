"""A simulator of the commit protocol under faults: the real code on an imitated filesystem.

`python -m tests.faults --seeds 100000` searches for seeds whose state or output differs from a
sequential run, and shrinks the first that does. `make faults SEEDS=100000` is the same.
"""
