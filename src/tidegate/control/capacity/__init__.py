"""Policies for machines by the minute (MST), and the priced one."""
