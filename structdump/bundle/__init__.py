"""The file: its model, codec, journal, writer, reader and redaction."""
