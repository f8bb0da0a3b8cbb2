"""Forecasts the time, memory and cost of sharding strategies on GPU clusters.

    import foreshard as fs
    study = fs.Study("gpt3-175b-a100-1024", set={"strategy.micro_batch": 2})
    study.predict().step.time_s                  # seconds
    best = study.search(budget="60s")[0]
    best.study.export("megatron")

Each question runs the command of the same name of the program `foreshard` in this process, without
the lock of the interpreter; questions may be asked from several threads at once. docs/library.md is
the page about it.
"""

from . import results
from ._errors import Error, InternalError
from ._result import Picture, Result
from ._run import Answer, Message, catalogue_folder, run
from ._study import Found, FoundStrategy, Part, Study
from ._verbs import *
from ._verbs import __all__ as _verbs

__all__ = [
    "Answer",
    "Error",
    "Found",
    "FoundStrategy",
    "InternalError",
    "Message",
    "Part",
    "Picture",
    "Result",
    "Study",
    "catalogue_folder",
    "results",
    "run",
    *_verbs,
]
