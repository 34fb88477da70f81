"""Everything that an installation keeps in one archive, and back."""
