// Face of train: train() runs a whole training, and its parts can be used alone. A TrainingStep computes loss and
// gradients of a batch, an Optimizer applies them with the rate of a Schedule, a plateau and EarlyStop take metrics,
// and a MovingAverage averages weights.
#pragma once

#include "lissome/train/budget/allocation_meter.h"
#include "lissome/train/budget/budget.h"
#include "lissome/train/budget/training_bytes.h"
#include "lissome/train/budget/try_budget.h"
#include "lissome/train/loop/early_stop.h"
#include "lissome/train/loop/recover_accuracy.h"
#include "lissome/train/loop/trainer.h"
#include "lissome/train/optim/accumulate.h"
#include "lissome/train/optim/initialize.h"
#include "lissome/train/optim/loss_scaler.h"
#include "lissome/train/optim/moving_average.h"
#include "lissome/train/optim/optimizer.h"
#include "lissome/train/optim/schedule.h"
#include "lissome/train/remat/offload_file.h"
#include "lissome/train/rewrite/training_passes.h"
#include "lissome/train/step/loss.h"
#include "lissome/train/step/precision.h"
#include "lissome/train/step/training_step.h"
