"""Weston and Blitzer (2012): tables.py chooses music.py or annotation.py, each with its data and methods."""
