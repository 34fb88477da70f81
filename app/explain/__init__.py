"""Why a plan is as fast as it is, why other layouts are not offered, and what would change it."""
