// SmoothQuant (Xiao et al. 2022, arXiv 2211.10438), before int8: one channel far larger than the others leaves these
// few of the 256 steps, so what linears read is divided by a factor a channel and their columns are multiplied by it.
#pragma once

#include <map>
#include <string>

#include "lissome/compress.h"
#include "lissome/compress/divide_channels.h"

namespace lissome {

struct SmoothedChannels {
  std::vector<ChannelDivision> divisions;   // one for each value that pays
  std::map<std::string, Smoothing> layers;  // by the printed name of a linear's result; those left alone are missing
};

// Linears that read one value share its factors. Their strength is the one whose int8 outputs err least on a sample of
// the calibration rows; where none errs clearly less than doing nothing, nothing is done.
SmoothedChannels smooth_channels(const Program& program, const CalibrationBatches& batches,
                                 const QuantizeOptions& options, const WorkControl& control = {});

}  // namespace lissome
