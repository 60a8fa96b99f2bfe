// Face of runtime: plans, their file form, and sessions that run them. Sees no torch; nodes without a kernel of our own
// run through the reference library, which is loaded when a plan asks for it.
#pragma once

#include "lissome/runtime/memory/address_space.h"
#include "lissome/runtime/memory/early_outputs.h"
#include "lissome/runtime/memory/memory_plan.h"
#include "lissome/runtime/memory/memory_timeline.h"
#include "lissome/runtime/memory/unnamed_file.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/plan/plan_io.h"
#include "lissome/runtime/session/bucketed_session.h"
#include "lissome/runtime/session/peaks.h"
#include "lissome/runtime/session/roofline.h"
#include "lissome/runtime/session/session.h"
#include "lissome/runtime/session/stream_pool.h"
#include "lissome/runtime/threads/thread_pool.h"
