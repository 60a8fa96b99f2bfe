// Face of base: errors, dtypes and arrays, text, units, files, zip, JSON, npy/npz, safetensors, threads, processor
// features. Rank 0: everything may use it, it uses the standard library alone (and nlohmann::json, libdeflate inside).
#pragma once

#include "lissome/base/cache_folder.h"
#include "lissome/base/dispatch.h"
#include "lissome/base/environment.h"
#include "lissome/base/error.h"
#include "lissome/base/file.h"
#include "lissome/base/mapped_range.h"
#include "lissome/base/model_file.h"
#include "lissome/base/npy.h"
#include "lissome/base/padding.h"
#include "lissome/base/processor.h"
#include "lissome/base/safetensors.h"
#include "lissome/base/temporary_file.h"
#include "lissome/base/tensor.h"
#include "lissome/base/text.h"
#include "lissome/base/units.h"
#include "lissome/base/version.h"
#include "lissome/base/zip.h"
