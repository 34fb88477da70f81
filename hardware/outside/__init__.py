"""The one reader of bytes from outside: JSON, CSV, packed files, and their texts."""
