"""Price data: offers, history, refreshes, quarantine and price books."""
