"""Writing a set of bits as an array of 0s and 1s, a vector of elements at a time.

The loop ``out[offset + i] = bits >> i & 1`` is where an observation spends its time. numba unrolls
short loops before it could turn them into vector instructions, so this one function is given to
LLVM as vector operations. They are legal on every processor, since LLVM splits what it cannot do at
once, and uncompiled the loop itself runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

_UNDEFINED = cast("Any", ir).Undefined
#: Elements of the widest vector operation; wider ones gain nothing on any processor of today.
_WIDEST = 16


def _element(builder: Any, bits: Any, first: int, width: int, dtype: Any) -> Any:
    """A vector of ``width`` elements: bits ``first``, ``first + 1``, ... of ``bits``."""
    vector = ir.VectorType(ir.IntType(32), width)
    word = builder.trunc(builder.lshr(bits, ir.Constant(bits.type, first)), ir.IntType(32))
    one = builder.insert_element(
        ir.Constant(vector, _UNDEFINED), word, ir.Constant(ir.IntType(32), 0)
    )
    splat = builder.shuffle_vector(
        one, ir.Constant(vector, _UNDEFINED), ir.Constant(vector, [0] * width)
    )
    shifted = builder.lshr(splat, ir.Constant(vector, list(range(width))))
    masked = builder.and_(shifted, ir.Constant(vector, [1] * width))
    if isinstance(dtype, types.Float):
        return builder.uitofp(masked, ir.VectorType(ir.FloatType(), width))
    return builder.trunc(masked, ir.VectorType(ir.IntType(8), width))


def _store_bits(_typing: Any, out: Any, _offset: Any, _bits: Any, width: Any) -> Any:
    """The signature and the code of ``store_bits`` for these types, as numba wants them."""
    literal: Any = width
    if not isinstance(width, types.IntegerLiteral) or out.dtype not in (
        types.float32,
        types.int8,
        types.uint8,
    ):
        return None

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        array = cast("Any", cgutils).create_struct_proxy(out)(context, builder, value=arguments[0])
        done = 0
        while done < literal.literal_value:
            size = min(_WIDEST, 1 << (literal.literal_value - done).bit_length() - 1)
            vector = _element(builder, arguments[2], done, size, out.dtype)
            place = builder.add(arguments[1], ir.Constant(arguments[1].type, done))
            pointer = builder.gep(array.data, [place])
            target = builder.bitcast(pointer, vector.type.as_pointer())
            builder.store(vector, target, align=out.dtype.bitwidth // 8)
            done += size
        return context.get_dummy_value()

    return types.void(out, types.int64, types.int64, literal), codegen


def _store_bits_uncompiled(out: Any, offset: int, bits: int, width: int) -> None:
    for i in range(width):
        out[offset + i] = bits >> i & 1


_settings: Any = config

#: ``store_bits(out, offset, bits, width)`` sets ``out[offset + i]`` to bit ``i`` of ``bits`` for
#: each ``i`` below ``width``, a constant. ``out`` is an array of float32, int8 or uint8
#: without gaps between its elements, which is not checked.
store_bits: Callable[[Any, int, int, int], None] = (
    _store_bits_uncompiled
    if _settings.DISABLE_JIT
    else cast("Any", intrinsic(prefer_literal=True)(_store_bits))
)
