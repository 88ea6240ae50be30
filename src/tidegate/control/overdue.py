"""What it means that executors were requested and do not come."""

FULL = (
    "the cluster or its queue may be full, or no machine have room for one; free some, raise the"
    " queue's share, or allow fewer cores"
)
