// The edits of fuzz_plan's mutator. Each changes one thing and leaves the rest as valid as it was; what does not apply
// to a document leaves it alone.
#pragma once

#include "tests/fuzz/plan_document.h"

namespace lissome {

using PlanEdit = void (*)(PlanDocument& document, Random& random);

// One setting of one step: a number, a list, a word, an instruction of an element-wise program.
void change_attribute(PlanDocument& document, Random& random);
// A size everywhere it occurs: in values, arrays and attributes alike.
void change_size_everywhere(PlanDocument& document, Random& random);
// Dtype, sizes, storage, format or kind of one value; its array follows, mostly.
void change_value(PlanDocument& document, Random& random);
void change_dtype_everywhere(PlanDocument& document, Random& random);
// An operand becomes another value that exists by then, mostly one with the same dtype and sizes.
void rewire_operand(PlanDocument& document, Random& random);
// Operands and results added, dropped, swapped, made -1.
void change_operands(PlanDocument& document, Random& random);
void change_kernel(PlanDocument& document, Random& random);
void move_step(PlanDocument& document, Random& random);
void repeat_step(PlanDocument& document, Random& random);
void drop_step(PlanDocument& document, Random& random);
void change_outputs(PlanDocument& document, Random& random);
void change_dimensions(PlanDocument& document, Random& random);
void change_writes(PlanDocument& document, Random& random);
// Level, threads, extents and what arrays hold.
void change_head(PlanDocument& document, Random& random);
// Any leaf of the plan becomes a value of any type.
void change_leaf(PlanDocument& document, Random& random);
// A view of every form, read by a later step or by an output; plan_views.cpp.
void insert_view(PlanDocument& document, Random& random);
// A step that takes any value: copy, cast, add, concatenation, sum.
void insert_step(PlanDocument& document, Random& random);

}  // namespace lissome
