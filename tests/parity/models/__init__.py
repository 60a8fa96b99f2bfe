# The families, in the order in which their cases are exported and listed.

from __future__ import annotations

from dataclasses import replace

import torch

from . import (activation, attention, complex_numbers, control_flow, conv, data_dependent, dtypes, dynamic_shapes, embedding,
               fourier, indexing, inplace, linear_algebra, networks_other, networks_text, networks_vision, norm, padding, pointwise,
               pooling, randomness, recurrent, reduction, resample, sorting, spellings, state, structures)
from case import Case

FAMILIES = (conv, norm, recurrent, attention, embedding, pooling, resample, padding, activation, pointwise, inplace,
            reduction, indexing, sorting, linear_algebra, fourier, complex_numbers, dtypes, dynamic_shapes, structures,
            state, randomness, control_flow, data_dependent, spellings, networks_vision, networks_text, networks_other)


def list_cases() -> list[Case]:
    """Every case that this torch exports, with its family's name, followed by its further forms."""
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    cases = []
    for family in FAMILIES:
        for case in family.CASES:
            if case.since > version:
                continue
            case = replace(case, family=family.__name__.rsplit(".", 1)[-1])
            cases += [case] + [case.with_form(form) for form in case.forms]
    names = [case.name for case in cases]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"case names used twice: {', '.join(sorted(repeated))}")
    return cases
