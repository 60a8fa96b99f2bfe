// Face of train: the parts of training. A loop takes a gradient from somewhere, gives it to an Optimizer with the rate
// that a Schedule names, shows metrics to a plateau and to EarlyStop, and keeps a MovingAverage beside.
#pragma once

#include "lissome/train/early_stop.h"
#include "lissome/train/initialize.h"
#include "lissome/train/moving_average.h"
#include "lissome/train/optimizer.h"
#include "lissome/train/schedule.h"
