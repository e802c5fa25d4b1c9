import contextlib
import os
from typing import Any, Optional, Sequence, Tuple, Union

from warptrace._native import LossWarning as LossWarning
from warptrace._native import Table as Table
from warptrace._native import Trace as Trace
from warptrace._native import TraceError as TraceError
from warptrace._native import open as open

__version__: str

def is_traced() -> bool: ...
def begin(path: Optional[Union[str, bytes, "os.PathLike[str]"]] = None) -> bool: ...
def end() -> bool: ...
def trace(
    path: Optional[Union[str, bytes, "os.PathLike[str]"]] = None,
) -> contextlib._GeneratorContextManager[None]: ...
