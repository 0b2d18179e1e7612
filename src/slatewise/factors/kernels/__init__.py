"""Compiled functions of this package: serial, ``nogil``, on contiguous arrays; they trust their input."""
