// The other face of data: batches for training. A source (a dataset, a folder of images, a class of yours), the order
// of its samples, transforms of images, and threads that load ahead. Sees no torch. Flow:
//
//   make_source(fit_dataset(...)) -> Loader(source, sampler, transforms) -> while (loader.next(batch)) ...
#pragma once

#include "lissome/data/batch_source.h"
#include "lissome/data/cache_source.h"
#include "lissome/data/collate.h"
#include "lissome/data/image_folder.h"
#include "lissome/data/loader.h"
#include "lissome/data/sampler.h"
#include "lissome/data/transform.h"
#include "lissome/data/tune_loader.h"
