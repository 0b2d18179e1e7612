"""Sums over matchings on a GPU; every module here needs torch, and none is imported before it is used."""
