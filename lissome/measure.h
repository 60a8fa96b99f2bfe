// Face of measure: clock, spans, memory, statistics, interleaved comparison, progress, and the records that reports
// draw.
#pragma once

#include "lissome/measure/clock.h"
#include "lissome/measure/compare_interleaved.h"
#include "lissome/measure/memory.h"
#include "lissome/measure/progress.h"
#include "lissome/measure/record.h"
#include "lissome/measure/span.h"
#include "lissome/measure/statistics.h"
