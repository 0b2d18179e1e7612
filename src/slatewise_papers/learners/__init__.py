"""Learners that only comparisons use."""
