"""What every system stands on, and nothing of one system."""
