"""Shows runs to people: live views, summaries and pages, made from records alone."""
