// Face of runtime, for who plans memory: what a plan would take. A face of its own, because few need it.
#pragma once

#include "lissome/runtime/memory/footprint.h"
