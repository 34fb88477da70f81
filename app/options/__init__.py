"""Every plan of an answer, filtered, as a map, and up to four side by side."""
