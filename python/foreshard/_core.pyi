from typing import Callable, Optional, Sequence

def run(
    words: Sequence[str],
    input: str = "",
    progress: Optional[Callable[[str, int, int], object]] = None,
) -> tuple[int, str, list[tuple[bool, str, str, int, int, str]]]: ...
