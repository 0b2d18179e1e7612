"""The hinge of a metric on a GPU; every module here needs torch, and none is imported before it is used."""
