"""What every page needs: address, session, form, figure, background search, login."""
