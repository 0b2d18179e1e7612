"""Model files with right hashes and hostile content: ``python -m tests.fuzz.models --cases N [--model NAME]``.

A case is a small fitted model of which some array or JSON value is altered and every checksum made right again. It is
loaded and asked everything under limits of memory and time. Two outcomes are allowed: a ModelFileError that names a
rule, or an estimator whose every answer has the shape and type it should have, with finite numbers where they are due.
"""
