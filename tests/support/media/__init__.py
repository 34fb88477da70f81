"""What each medium shows of one plan: tests/whole/test_one_cost.py compares them."""
