// What files that call ops include, parsed once for all of them. Files still include what they use;
// this only makes it quick.
// Logging.h first: its CHECK macros must come before doctest's, which then replace them.
#pragma once

#include <c10/util/Logging.h>

// What every ATen/ops/<op>.h starts with.
#include <ATen/Context.h>
#include <ATen/DeviceGuard.h>
#include <ATen/TensorUtils.h>
#include <ATen/TracerMode.h>
#include <ATen/core/Reduction.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include "standard.h"
