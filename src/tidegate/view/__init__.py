"""What people see, made from records and results alone."""
