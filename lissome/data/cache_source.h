// Samples of a slow source, kept in memory.
#pragma once

#include <memory>

#include "lissome/data/batch_source.h"

namespace lissome {

// Keeps samples as `source` gave them, the first ones that fit into `bytes`, and never lets one go: an epoch asks for
// each sample once, so that any other is as likely to be wanted next. Sources whose samples differ in size or type
// within a batch are asked each time.
std::shared_ptr<const BatchSource> cache_source(std::shared_ptr<const BatchSource> source, int64_t bytes);

}  // namespace lissome
