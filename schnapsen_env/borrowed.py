"""Arrays that compiled loops use without counting references to them.

numba counts references to every array and to every row taken from one, with locked instructions,
around uses behind a jump. Batches step 1.6 times as fast without. Who calls a compiled function
holds its arrays for as long as the call takes, so nothing needs to be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import config, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

_array_type: Any = types.Array


def _borrowed(_typing: Any, array: Any) -> Any:
    """The signature and the code of ``borrowed`` for this type, as numba wants them.

    Raises:
        TypingError: it is no array.
    """
    if not isinstance(array, _array_type):
        raise TypingError(f"borrowed takes an array, not {array}")

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        model = context.data_model_manager[array]
        fields = arguments[0]
        # Without its two owners an array is a pointer with a shape, and the optimizer removes what
        # would count references to nobody.
        for owner in ("meminfo", "parent"):
            place = model.get_field_position(owner)
            nobody = ir.Constant(fields.type.elements[place], None)
            fields = builder.insert_value(fields, nobody, place)
        return fields

    return array(array), codegen


def _borrowed_uncompiled(array: Any) -> Any:
    return array


_settings: Any = config

#: ``borrowed(array)`` is the same array for use within this call. It must be an argument of the
#: function, or come out of one; an array that the function has made itself may be freed, and its
#: memory used again, while it is borrowed. No row of it may be returned or kept otherwise.
borrowed: Callable[[Any], Any] = (
    _borrowed_uncompiled
    if _settings.DISABLE_JIT
    else cast("Any", intrinsic(cast("Any", _borrowed)))
)
