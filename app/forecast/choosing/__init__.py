"""What a chosen plan has to pass besides its numbers, and what choosing it does to them."""
