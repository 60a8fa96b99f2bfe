// The edits of fuzz_plan's mutator. Each changes one thing and leaves the rest as valid as it was; what does not apply
// to a document leaves it alone.
#pragma once

#include "tests/fuzz/plan/plan_document.h"

namespace lissome {

using PlanEdit = void (*)(PlanDocument& document, FuzzRandom& random);

// One setting of one step: a number, a list, a word, an instruction of an element-wise program.
void change_attribute(PlanDocument& document, FuzzRandom& random);
// A size everywhere it occurs: in values, arrays and attributes alike.
void change_size_everywhere(PlanDocument& document, FuzzRandom& random);
// Dtype, sizes, storage, format or kind of one value; its array follows, mostly.
void change_value(PlanDocument& document, FuzzRandom& random);
void change_dtype_everywhere(PlanDocument& document, FuzzRandom& random);
// An operand becomes another value that exists by then, mostly one with the same dtype and sizes.
void rewire_operand(PlanDocument& document, FuzzRandom& random);
// Operands and results added, dropped, swapped, made -1.
void change_operands(PlanDocument& document, FuzzRandom& random);
void change_kernel(PlanDocument& document, FuzzRandom& random);
void move_step(PlanDocument& document, FuzzRandom& random);
void repeat_step(PlanDocument& document, FuzzRandom& random);
void drop_step(PlanDocument& document, FuzzRandom& random);
void change_outputs(PlanDocument& document, FuzzRandom& random);
void change_dimensions(PlanDocument& document, FuzzRandom& random);
void change_writes(PlanDocument& document, FuzzRandom& random);
// Level, threads, extents and what arrays hold.
void change_head(PlanDocument& document, FuzzRandom& random);
// Any leaf of the plan becomes a value of any type.
void change_leaf(PlanDocument& document, FuzzRandom& random);
// A view of every form, read by a later step or by an output; plan_views.cpp.
void insert_view(PlanDocument& document, FuzzRandom& random);
// A step that takes any value: copy, cast, add, concatenation, sum.
void insert_step(PlanDocument& document, FuzzRandom& random);

}  // namespace lissome
