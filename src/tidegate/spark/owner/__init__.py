"""Who may commit to a checkpoint: one driver at a time, and an older one notices that it is not."""
