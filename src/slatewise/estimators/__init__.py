"""Estimators: validate, choose parts, delegate; no numerics of their own."""
