"""Base scores: the log-odds of every label by itself, in reading order.

classifiers   the three bases (logistic regression, "svc", a classifier of the user's): five folds, then all rows
logistic      one logistic regression per label, many labels at once
newton        the same for more than a thousand labels, in float32
calibration   makes out-of-fold scores log-odds

``Base.cross_fit`` is the way in; it returns the out-of-fold log-odds of the training rows, and a :class:`FittedBase`.
"""
