"""Learners: from an objective to parameters with a certificate."""
