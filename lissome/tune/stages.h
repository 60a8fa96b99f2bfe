// The stages of a search in their order. Each stage proposes steps, which the search judges.
#pragma once

#include "lissome/tune/search.h"

namespace lissome {

void run_basic_stage(Search& search);        // all exact rewrites, static memory, layout, own kernels
void run_computation_stage(Search& search);  // bf16, int8
void run_compilation_stage(Search& search);  // kernels chosen by timing
void run_deployment_stage(Search& search);   // threads

}  // namespace lissome
