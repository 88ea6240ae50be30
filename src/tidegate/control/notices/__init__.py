"""What a person should hear of: when it begins, and when it ends."""
