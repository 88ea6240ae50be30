"""The parts of the page, a file each."""
