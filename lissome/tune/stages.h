// What is tried, in which order. Each stage proposes steps to the search and leaves the judging to it.
#pragma once

#include "lissome/tune/search.h"

namespace lissome {

void run_basic_stage(Search& search);        // all exact rewrites, static memory, layout, own kernels
void run_computation_stage(Search& search);  // bf16, int8
void run_compilation_stage(Search& search);  // kernels chosen by timing
void run_deployment_stage(Search& search);   // threads

}  // namespace lissome
