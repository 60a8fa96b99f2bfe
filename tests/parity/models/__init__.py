# The families, in the order in which their cases are exported and listed.

from __future__ import annotations

from dataclasses import replace

from . import attention, control_flow, conv, dynamic_shapes, norm, recurrent
from case import Case

FAMILIES = (conv, norm, recurrent, attention, control_flow, dynamic_shapes)


def list_cases() -> list[Case]:
    """Every case with its family's name, followed by its further forms."""
    cases = []
    for family in FAMILIES:
        for case in family.CASES:
            case = replace(case, family=family.__name__.rsplit(".", 1)[-1])
            cases += [case] + [case.with_form(form) for form in case.forms]
    names = [case.name for case in cases]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"case names used twice: {', '.join(sorted(repeated))}")
    return cases
