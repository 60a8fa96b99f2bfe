// SmoothQuant (Xiao et al. 2022, arXiv 2211.10438), before int8: a channel that is far larger than the others leaves
// these few of the 256 levels, so the inputs of linears are divided by a factor for each channel and their columns are
// multiplied by it.
#pragma once

#include <map>
#include <string>

#include "lissome/compress.h"
#include "lissome/compress/divide_channels.h"
#include "lissome/compress/layer.h"

namespace lissome {

struct SmoothedChannels {
  std::vector<ChannelDivision> divisions;   // one for each value that it improves
  std::map<std::string, Smoothing> layers;  // by the printed name of a layer's result; only smoothed ones
};

// Of these layers only those that have no reason to stay in float: linears, and convolutions behind a convolution whose
// weights can take the division in (equalization across layers, Nagel et al. 2019, arXiv 1906.04721, with factors that
// data choose). Layers that read the same value share its factors. The strength is the one whose int8 outputs have the
// smallest error on a sample of the calibration rows. A value is smoothed only if this error is clearly smaller than
// without smoothing.
SmoothedChannels smooth_channels(const Program& program, std::vector<Layer> layers, const CalibrationBatches& batches,
                                 const QuantizeOptions& options, const WorkControl& control = {});

}  // namespace lissome
