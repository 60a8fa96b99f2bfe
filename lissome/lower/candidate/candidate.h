// What could compute a node. A list belongs to one or several ops; lowering tries its rows in order, and the reference,
// which every list ends in without saying so, takes what none accepts.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lissome/lower/plan/plan_builder.h"

namespace lissome {

struct Candidate {
  std::string_view name;  // for --kernel, reports and the plan
  // Empty when the kernel can compute this node, else the reason why not.
  std::string (*refuse)(const PlanBuilder& builder, const Node& node);
  // Adds the steps, or keeps rewritten nodes.
  void (*emit)(PlanBuilder& builder, const Node& node);
  // Off where the node alone tells nothing: a view costs nothing, an element-wise step keeps its neighbours together.
  bool timed = true;
  // Keeps nodes for libtorch.
  bool libtorch = false;
  // Of what joins the node with another: the kernel that it is apart, whose time is its own where the node is alone.
  std::string_view apart = {};
  // A rule in place of timing: listed with Effort::fast alone.
  bool guesses = false;
};

struct CandidateList {
  std::string_view op;
  std::span<const Candidate> rows;
};

inline constexpr std::string_view kReferenceKernel = "reference";
// Stands for the first kernel that accepts a node and needs no libtorch.
inline constexpr std::string_view kOwnKernel = "ours";

std::span<const CandidateList> candidate_lists();
std::span<const Candidate> find_candidates(const Op& op);  // empty when there are none

}  // namespace lissome
