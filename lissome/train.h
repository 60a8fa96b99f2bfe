// Face of train: train() is the whole; its parts are usable alone. A TrainingStep gives loss and gradients of a batch,
// an Optimizer takes them with the rate that a Schedule names, metrics go to a plateau and to EarlyStop, and a
// MovingAverage stands beside.
#pragma once

#include "lissome/train/accumulate.h"
#include "lissome/train/allocation_meter.h"
#include "lissome/train/budget.h"
#include "lissome/train/early_stop.h"
#include "lissome/train/initialize.h"
#include "lissome/train/loss.h"
#include "lissome/train/loss_scaler.h"
#include "lissome/train/moving_average.h"
#include "lissome/train/offload_file.h"
#include "lissome/train/optimizer.h"
#include "lissome/train/precision.h"
#include "lissome/train/schedule.h"
#include "lissome/train/trainer.h"
#include "lissome/train/training_bytes.h"
#include "lissome/train/training_step.h"
#include "lissome/train/try_budget.h"
