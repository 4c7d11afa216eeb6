"""The default method: find the directions of the rows, whiten, release."""
