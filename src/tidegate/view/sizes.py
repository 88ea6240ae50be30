"""Formats sizes in bytes for people."""


def readable(number: int) -> str:
    """In the largest unit in which the number is at least 1."""
    size = float(number)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
