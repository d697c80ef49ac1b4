"""Arrays that compiled loops use without counting references to them.

numba counts references to every array and to every row taken from one, with locked instructions,
around each use behind a jump. In a loop over the rows of a batch that took longer than the rules
and a third of the time of an observation. Who calls a compiled function holds its arrays for as
long as the call takes, so nothing needs to be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba.core import cgutils, config
from numba.extending import intrinsic

_A = TypeVar("_A")


def _borrowed(_typing: Any, array: Any) -> Any:
    """The signature and the code of ``borrowed`` for this type, as numba wants them."""

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        fields = cast("Any", cgutils).create_struct_proxy(array)(
            context, builder, value=arguments[0]
        )
        # Without its two owners an array is a pointer with a shape, and the optimizer removes what
        # would count references to nobody.
        fields.meminfo = ir.Constant(fields.meminfo.type, None)
        fields.parent = ir.Constant(fields.parent.type, None)
        return fields._getvalue()

    return array(array), codegen


def _borrowed_uncompiled(array: _A) -> _A:
    return array


_settings: Any = config

#: ``borrowed(array)`` is the same array for use within this call: no row of it may be returned, or
#: kept otherwise, and the caller must hold the array.
borrowed: Callable[[_A], _A] = (
    _borrowed_uncompiled
    if _settings.DISABLE_JIT
    else cast("Any", intrinsic(cast("Any", _borrowed)))
)
