// Tells users before the first step which choices of a training they might not expect.
#pragma once

#include <string>
#include <vector>

#include "lissome/train/loop/learn/current_step.h"
#include "lissome/train/loop/learn/training_model.h"

namespace lissome {

// A sentence each: samples that fill no batch, the plan of the step, options without effect, parts of the model that do
// not train. `samples`: of an update.
std::vector<std::string> list_setup_notices(const TrainingModel& model, const CurrentStep& step, const Dataset& data,
                                            int64_t samples, const TrainOptions& options);
// What the moving average of weights consists of after so many steps, if that is much of the first weights; else empty.
std::string describe_average(const TrainOptions& options, int64_t steps);

}  // namespace lissome
