// Reasons that several kernels share; each is empty when there is nothing to refuse.
#pragma once

#include <string>

#include "lissome/kernel.h"
#include "lissome/lower/plan/plan_builder.h"
#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// Not a tensor of this dtype with sizes that follow from the inputs' sizes.
std::string refuse_tensor(const PlanBuilder& builder, const Argument& argument, Dtype dtype);
// As above, or none.
std::string refuse_optional(const PlanBuilder& builder, const Argument& argument, Dtype dtype);
// Not a weight that stays the same, of this dtype and rank.
std::string refuse_weight(const PlanBuilder& builder, const Argument& argument, Dtype dtype, int64_t rank);
// Not an activation that kernels know.
std::string refuse_activation(const Argument& argument);

// Not of this dtype or not of the sizes of the node's result: what is added before the activation. None passes.
std::string refuse_residual(const PlanBuilder& builder, const Node& node, const Argument& residual,
                            Dtype dtype = Dtype::f32);
// Not a literal number.
std::string refuse_number(const Argument& argument, std::string_view name);
double read_number(const Argument& argument);
// Numbers of a list of literals; empty when something in it is no number.
std::optional<std::vector<int64_t>> read_integers(const Argument& argument);

// A literal dimension inside the rank, counted from the front; -1 when it is none.
int64_t read_dim(const Argument& argument, size_t rank);

// The node that makes a value; null for inputs and weights.
const Node* find_maker(const PlanBuilder& builder, ValueId value);
// Who reads a value in the program, in whatever way.
std::vector<const Node*> find_readers(const Program& program, ValueId value);
// Whether it is a result of the program, or written to its state.
bool leaves_program(const Program& program, ValueId value);
// Made by a kept node that draws random numbers, and so could not be made elsewhere.
bool is_drawn(const PlanBuilder& builder, ValueId value);

// The first that is not empty.
std::string first_refusal(std::initializer_list<std::string> refusals);

// An activation of the fused ops in the words of kernels.
ActivationFields translate_activation(const std::string& activation);

}  // namespace lissome
