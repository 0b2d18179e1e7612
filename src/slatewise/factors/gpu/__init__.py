"""Training and ranking on a GPU; every module here needs torch, and nothing imports one before it is needed."""
