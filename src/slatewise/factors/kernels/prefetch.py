"""Ask for a row of a table before it is needed, so that it is in the cache by then."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

_config: Any = import_module("numba.core.config")

if TYPE_CHECKING or _config.DISABLE_JIT:  # as plain Python there is nothing to do

    def prefetch_row(table: NDArray[np.float32], row: int) -> None:
        """Start loading ``table[row]``."""

    def prefetch_line(table: NDArray[np.int8], row: int) -> None:
        """Start loading what ``table[row]`` begins with."""
else:
    _cgutils, _types = import_module("numba.core.cgutils"), import_module("numba.core.types")
    _ir = import_module("llvmlite.ir")

    def _fetch(lines: int, table: Any, row: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            stride = _cgutils.unpack_tuple(builder, array.strides, 2)[0]
            byte, number = _ir.IntType(8).as_pointer(), _ir.IntType(32)
            start = builder.gep(builder.bitcast(array.data, byte), [builder.mul(arguments[1], stride)])
            kind = _ir.FunctionType(_ir.VoidType(), [byte, number, number, number])
            fetch = _cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            for line in range(lines):
                place = builder.gep(start, [_ir.IntType(64)(64 * line)])
                builder.call(fetch, [place, number(0), number(3), number(1)])  # to read, often, data
            return context.get_dummy_value()

        return _types.void(table, row), generate

    @import_module("numba.extending").intrinsic
    def prefetch_row(typing: Any, table: Any, row: Any) -> Any:
        """Start loading ``table[row]``: exactly four cache lines, however long it is."""
        return _fetch(4, table, row)

    @import_module("numba.extending").intrinsic
    def prefetch_line(typing: Any, table: Any, row: Any) -> Any:
        """Start loading the first cache line of ``table[row]``."""
        return _fetch(1, table, row)
