// Weights and constants of a `.pt2` as tensors over the mapped file. One storage per member: tied parameters share it.
// The mapping is private and copied on write, so that training or state writes never reach the user's file.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <unordered_map>

#include "lissome/program/pt2/archive.h"

namespace lissome {

// Element types by torch's number; unsupported where a program has no such type.
at::ScalarType pt2_scalar_type(int64_t number);

class Pt2Tensors {
 public:
  explicit Pt2Tensors(const Pt2Archive& archive);

  // By parameter, buffer or constant name. Throws invalid_input when the archive has none such, when sizes are negative
  // or overflow, when offset and strides reach beyond the storage, when the storage has another length than the tensor
  // needs, when its CRC32 is wrong; unsupported for pickled tensors and layouts other than strided.
  at::Tensor read(const std::string& name);
  // Its requires_grad. `name` was read.
  bool trains(const std::string& name) const;

 private:
  struct Entry {
    const Json* meta;    // path_name, use_pickle, tensor_meta
    std::string folder;  // "data/weights/"
  };
  void add_config(const Json& config, const std::string& folder);
  c10::Storage find_storage(const std::string& name, const std::string& member);

  const Pt2Archive& archive_;
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_map<std::string, c10::Storage> storages_;  // by member
  std::unordered_map<std::string, int> users_;              // entries per member
};

}  // namespace lissome
