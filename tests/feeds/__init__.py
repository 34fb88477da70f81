"""Price feeds in their documented shapes, behind real servers on the loopback interface."""
