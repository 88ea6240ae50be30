"""What can be asked of the queries, as texts; this needs no Spark."""

from tidegate.errors import AskedWrongly

MOST_QUERIES = 10_000


def query_numbers(text: str) -> tuple[int, ...]:
    """Parse numbers of queries, such as `20,100,200`."""
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1 or max(numbers) > MOST_QUERIES:
        raise AskedWrongly(
            f"'{text}' are not numbers of queries from 1 to {MOST_QUERIES:,}; write them as"
            " 20,100,200"
        )
    return numbers
