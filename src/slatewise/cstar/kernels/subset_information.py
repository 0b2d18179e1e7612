"""How uncertain labels are once the core is known: what is left of their entropy.

H(y_i | z) = sum over core settings z of  P(z) h(x_i(z))

h(x) = log(1 + e) - log(e) e / (1 + e) ,    e = min(x, 1/x)
"""

from __future__ import annotations

import numpy as np

from slatewise.core.running.kernel import kernel
from slatewise.cstar.kernels.subset_layout import KNOWN_IN, RUN, TAME, Floats, SubsetPair, SubsetTerms
from slatewise.cstar.kernels.subsets import fill_sums

LEAST = 1e-17
"""A setting that is less likely adds nothing."""


@kernel
def entropies_given_core(star: SubsetPair, terms: SubsetTerms, chance: Floats, entropy: Floats) -> None:
    """Fill the entropy of each label that is not in the core given the core, (n, R); 0 where it is known."""
    n_settings = chance.shape[1]
    u = np.empty(n_settings)
    for row in range(len(chance)):
        for i in range(entropy.shape[1]):
            total = 0.0
            if terms.kind[row, i] < KNOWN_IN:
                is_tame = terms.kind[row, i] == TAME
                fill_sums(terms.v[row, i], star.run[i], star.place[i], u)
                for j in range(n_settings):
                    if chance[row, j] > LEAST:
                        distance = abs(u[j])
                        if is_tame:
                            x = terms.base[row, i] * star.run_factor[i, j // RUN] * star.place_factor[i, j % RUN]
                            e = min(x, 1.0 / x)
                        else:
                            e = np.exp(-distance)
                        if e > 0.0:
                            total += chance[row, j] * (np.log(1.0 + e) + distance * e / (1.0 + e))
            entropy[row, i] = total
