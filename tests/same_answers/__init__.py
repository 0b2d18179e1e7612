"""Fits and answers of every estimator beside those of another commit, bit for bit: ``python -m tests.same_answers``.

``case`` says what a case is, ``__main__`` runs them under both commits. The other modules are the cases, by system:
each has the spelling of the other commit and that of this one. Together they are the map from 0.2 to 0.3.
"""
