// The `.pt2` container: which members it has and what they are for. Torch-free. Drawn from torch.export.save of 2.11 to
// 2.13, which writes, under one folder named after the file:
//
//   archive_format                            "pt2"
//   archive_version                           "0"
//   byteorder                                 "little"
//   models/<name>.json                        graph, signature, ranges: the model
//   data/weights/<name>_weights_config.json   parameter or buffer name -> member and tensor shape
//   data/weights/weight_<n>                   raw bytes of one storage
//   data/constants/<name>_constants_config.json, data/constants/tensor_<n>   the same for constants
//   data/sample_inputs/<name>.pt              a pickle: never opened
//   data/aotinductor/...                      native code: never opened
#pragma once

#include <string>

#include "lissome/base.h"
#include "lissome/program/pt2/fields.h"

namespace lissome {

struct Pt2Archive {
  ZipReader zip;
  std::string root;        // "model/", the folder that all members lie in
  std::string model_name;  // "model"
  Json model;              // models/<name>.json
  Json weights;            // the config of data/weights, name -> entry
  Json constants;          // the config of data/constants

  // The member at this path below the root; invalid_input when it is missing.
  const ZipMember& member(const std::string& path) const;
};

// Throws usage (no such file), invalid_input (broken or hostile; not a model at all), unsupported (another kind of
// model file, another version, native code) and says what the file is and how to export it.
Pt2Archive open_pt2(const std::string& path);

}  // namespace lissome
