"""What is learned from measurements and shared by every policy that needs it."""
