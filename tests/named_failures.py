"""Checks of scikit-learn that an estimator fails, with the reason: the same that docs/lists.rst names."""

WEIGHTS_OF_LISTS = dict.fromkeys(
    ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"],
    "sample_weight belongs to lists: a row that is there twice makes another list",
)
