import os
from typing import Any, Dict, List, Literal, Optional, Sequence, Tuple, Union

Block = Union[int, Tuple[int, int], Tuple[int, int, int]]

class TraceError(Exception): ...
class LossWarning(UserWarning): ...

class Table:
    @property
    def columns(self) -> List[str]: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def to_pydict(self) -> Dict[str, List[Any]]: ...
    def to_pandas(self) -> Any: ...

class Trace:
    @property
    def path(self) -> str: ...
    @property
    def summary(self) -> Dict[str, Any]: ...
    @property
    def slots(self) -> Literal["instruction slots", "lane slots"]: ...
    @property
    def kernels(self) -> Table: ...
    @property
    def launches(self) -> Table: ...
    @property
    def locations(self) -> Table: ...
    def lines(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
    ) -> Table: ...
    def causes(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
    ) -> Table: ...
    def loops(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
    ) -> Table: ...
    def edges(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
    ) -> Table: ...
    def warps(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
    ) -> Table: ...
    def events(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
        columns: Optional[Sequence[str]] = None,
    ) -> Table: ...
    def runs(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
        columns: Optional[Sequence[str]] = None,
    ) -> Table: ...
    def accesses(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
        columns: Optional[Sequence[str]] = None,
    ) -> Table: ...
    def values(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
        columns: Optional[Sequence[str]] = None,
    ) -> Table: ...
    def lane_accesses(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
        columns: Optional[Sequence[str]] = None,
    ) -> Table: ...
    def lane_values(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
        columns: Optional[Sequence[str]] = None,
    ) -> Table: ...
    def sites(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
    ) -> Table: ...
    def losses(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
    ) -> Table: ...
    def access_losses(
        self,
        *,
        kernel: Optional[str] = None,
        launch: Optional[int] = None,
        block: Optional[Block] = None,
        warp: Optional[int] = None,
    ) -> Table: ...

def open(path: Union[str, "os.PathLike[str]"], *, unlimited: bool = False) -> Trace: ...
