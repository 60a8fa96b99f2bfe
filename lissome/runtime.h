// Face of runtime: plans, their file form, and sessions that run them. Sees no torch; nodes without a kernel of our own
// run through the reference library, which is loaded when a plan asks for it.
#pragma once

#include "lissome/runtime/address_space.h"
#include "lissome/runtime/bucketed_session.h"
#include "lissome/runtime/early_outputs.h"
#include "lissome/runtime/memory_plan.h"
#include "lissome/runtime/memory_timeline.h"
#include "lissome/runtime/peaks.h"
#include "lissome/runtime/plan.h"
#include "lissome/runtime/plan_io.h"
#include "lissome/runtime/session.h"
#include "lissome/runtime/stream_pool.h"
#include "lissome/runtime/team.h"
#include "lissome/runtime/unnamed_file.h"
