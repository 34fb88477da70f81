"""What published guides advise and claim, and what the forecast says of each row."""
