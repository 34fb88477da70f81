"""Where the bytes and the seconds of a plan go."""
