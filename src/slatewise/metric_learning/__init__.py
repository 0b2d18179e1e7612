"""Distances and linear scores trained for a ranking measure (McFee, Lanckriet 2010)."""
