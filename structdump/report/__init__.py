"""Bundles shown to people: terminal and HTML."""
