"""What a hostile link, file, feed or neighbour tries, and what happens then: docs/threats.md."""
