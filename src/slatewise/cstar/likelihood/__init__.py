"""The likelihood of label sets, given log-odds: CStarRanker's second stage, in reading order.

objective   log-odds scaled and shifted with pair terms, and two likelihoods: among sets of any size, or of known size
fit         minimizes them: sets of any size first, then terms for rows whose number of labels is known
choice      which core, and how strong, by held-out likelihood

Log-odds (n, labels), labels with -1 for unknown ones and weights of rows go in; a flat vector a, v, G comes out.
"""
