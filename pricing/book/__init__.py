"""Price books: own and negotiated prices, checked, and stored under a name."""
