"""Rolling Hashtag Count: hashtags of tweets in a moving window (MST section IV-A)."""
