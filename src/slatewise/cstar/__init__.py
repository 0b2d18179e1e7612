"""Labels ranked jointly with a few core labels (Mensink, Verbeek, Caetano 2011), in reading order.

star_ranker     what both estimators share: names of labels, known labels, answers, score
ranker          CStarRanker: base scores, then pair terms, by the likelihood of label sets of any size
margin_ranker   CStarMarginRanker: the model of the paper, by the hinge of precision at k
rows            rows to learn from: labels, some of which may be unknown; equal rows become one; units of columns
core_labels     greedy choices of the core: joint mutual information, and what scores leave unexplained
answers         predictors: scored rows in, margins, lists and sets out; explanations; the number of labels

base/           log-odds of single labels, cross-fitted and calibrated
likelihood/     CStarRanker's second stage: objective, fit, choice of core and strength
margin/         CStarMarginRanker's training: unary features, hinge, solvers, choice
inference/      exact inference: best sets, sums over sets, decisions
kernels/        the compiled loops of inference and of the dual solver

The path of data: X, y -> ``rows.read_label_table`` -> base scores or unary features -> core, C -> a fit -> coef_,
intercept_ and pair_ -> ``ScoredRows`` -> a predictor -> :class:`slatewise.core.rankings.Rankings`.
"""
