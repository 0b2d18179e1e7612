"""The model file, saving and loading, checkpoints, and what estimators share."""
