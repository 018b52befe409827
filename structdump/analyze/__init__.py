"""What can be learned from bundles: differences, merges, tables, repros, trees."""
