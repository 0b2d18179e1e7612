"""What training minimises in place of the task loss."""
