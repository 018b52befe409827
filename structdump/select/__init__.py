"""Which artifacts to keep: level and filters, then the byte budget."""
