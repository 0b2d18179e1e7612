"""Multi-label ARFF files under mutation."""

from functools import partial
from typing import BinaryIO

import numpy as np

from slatewise.data import read_arff
from tests.data.reference_arff import reference_arff
from tests.fuzz import Format


def arff(file: BinaryIO) -> object:
    found = read_arff(file, labels=2)
    sparse = not isinstance(found.X, np.ndarray)
    X = found.X if isinstance(found.X, np.ndarray) else found.X.toarray()
    assert found.feature_names is not None
    names = (*found.feature_names.tolist(), *found.label_names.tolist())
    features = tuple(tuple(value.tobytes() for value in row) for row in X)
    return names, sparse, features, tuple(map(tuple, found.Y.toarray().tolist()))


HEADER = b"@relation r\n@attribute a numeric\n@attribute b {x,y}\n@attribute p {0,1}\n@attribute q {1,0}\n@data\n"

FORMATS = [
    Format(
        "arff",
        (
            HEADER + b"1.5,x,0,1\n-2e3 , y, 1,0\n",
            HEADER + b"{0 2, 1 y, 3 0}\n{}\n{ 2 1 }\n",
            HEADER + b"{1 y}\n7,x,1,1\n",
            b'% comment\n@RELATION \'a b\'\r\n\r\n@Attribute "c\\"d" REAL % more\r\n'
            b"@attribute e{'f, g' , \"?\", h}\r\n@attribute n {5,7}\n"
            b"@attribute p integer\n@attribute 'q\\\\' {0}\n@data\n"
            b"0,'f, g',5,1,0 % end\n% \n'3',\"?\",7,0,0\n{3 1}\n",
        ),
        arff,
        partial(reference_arff, n_labels=2),
        (
            b"'",
            b'"',
            b"{",
            b"}",
            b"%",
            b"?",
            b"@data\n",
            b"@attribute z real\n",
            b" string",
            b"\\",
            b"{0 1}\n",
            b",",
            b"'x'",
            b"\xe2\x80\xa8",
            b"\xc2\x85",
        ),
    )
]
