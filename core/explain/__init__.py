"""Why one layout is slower than another, and what stands in the way of a faster one."""
