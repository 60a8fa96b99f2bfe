// Program <-> model.lissome. The program travels as its text (dimensions, call tree, training form, child programs and
// source lines included), its weights as arrays of their PyTorch names. What a dense array cannot say is added to the
// metadata under "program":
//
//   {"views": [{"name": "q", "array": "storage:q", "dtype": "f32", "sizes": [2, 3], "strides": [1, 2], "offset": 6}],
//    "sparse": [{"name": "s", "layout": "sparse_csr", "sizes": [4, 4], "arrays": ["s:0", "s:1", "s:2"], "coalesced":
//    true}]}
//
// views: weights that are different parts of one storage, kept in one array (dtype u8, the bytes of the part that is
// used; offset in elements). sparse: indices (coordinates; or compressed, then plain) and values. Weights of child
// programs have the scope of body_scope before their names. All of it is checked when read: the file may be hostile.
#include <ATen/ops/_validate_sparse_compressed_tensor_args.h>
#include <ATen/ops/_validate_sparse_coo_tensor_args.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/set.h>
#include <ATen/ops/sparse_compressed_tensor.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "lissome/base.h"
#include "lissome/program.h"
#include "lissome/program/import/detect.h"
#include "lissome/program/text/parse_weights.h"
#include "lissome/program/text/text_words.h"

namespace lissome {
namespace {

// ---- packing -------------------------------------------------------------------------------------------------------
struct ScopedWeight {
  std::string name;  // with its scope
  at::Tensor tensor;
};

std::vector<ScopedWeight> collect_weights(const Program& program) {
  std::vector<ScopedWeight> weights;
  for (const auto& [name, tensor] : list_weights_by_scope(program)) {
    LISSOME_CHECK(tensor.defined(), "weight ", name, " has no tensor");
    weights.push_back({name, tensor.detach().cpu().resolve_conj().resolve_neg()});
  }
  return weights;
}

struct ByteExtent {  // of bytes in a storage
  int64_t first = 0, last = 0;
};

ByteExtent find_byte_extent(const at::Tensor& tensor) {
  int64_t last = tensor.storage_offset();
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  const auto item = static_cast<int64_t>(tensor.element_size());
  return {tensor.storage_offset() * item, (last + 1) * item};
}

// Keeps the tensor alive as long as the array.
Array borrow_array(const at::Tensor& tensor, Dtype dtype, Sizes sizes) {
  auto owner = std::make_shared<at::Tensor>(tensor);
  void* data = tensor.data_ptr();
  return {dtype, std::move(sizes), std::shared_ptr<void>(std::move(owner), data)};
}

class Packer {
 public:
  explicit Packer(std::vector<ScopedWeight> weights) : weights_(std::move(weights)) {}

  void pack(ModelFile& file) {
    for (const ScopedWeight& weight : weights_) {
      if (!names_.insert(weight.name).second) {
        throw_error(ErrorKind::internal, "two weights are called '", weight.name, "'");
      }
    }
    std::map<const void*, std::vector<const ScopedWeight*>> by_storage;
    for (const ScopedWeight& weight : weights_) {
      if (weight.tensor.layout() == at::kStrided && weight.tensor.numel() > 0) {
        by_storage[weight.tensor.storage().data()].push_back(&weight);
      }
    }
    for (const ScopedWeight& weight : weights_) {
      if (weight.tensor.layout() != at::kStrided) {
        add_sparse(file, weight);
        continue;
      }
      const auto group = by_storage.find(weight.tensor.numel() > 0 ? weight.tensor.storage().data() : nullptr);
      const bool shares = group != by_storage.end() && group->second.size() > 1;
      if ((shares && !is_one_array(group->second)) || is_permuted(weight.tensor)) {
        if (group->second.front() == &weight) add_views(file, group->second);
      } else {
        const at::Tensor dense = weight.tensor.contiguous();
        add_array(file, weight.name, borrow_array(dense, dtype_of(dense.scalar_type()), dense.sizes().vec()));
      }
    }
    if (!views_.empty() || !sparse_.empty()) {
      file.metadata = print_json(Json{{"program", {{"views", views_}, {"sparse", sparse_}}}});
    }
  }

 private:
  // Tied in the plain way: all begin at one place and are dense.
  static bool is_one_array(const std::vector<const ScopedWeight*>& group) {
    return std::all_of(group.begin(), group.end(), [&](const ScopedWeight* weight) {
      return weight->tensor.is_contiguous() && weight->tensor.data_ptr() == group.front()->tensor.data_ptr();
    });
  }

  // Dense, in another order than its dimensions', as channels-last: kept so, because libtorch chooses its kernels, and
  // so the last bits of what they give, by that order.
  static bool is_permuted(const at::Tensor& tensor) {
    return tensor.numel() > 0 && !tensor.is_contiguous() && tensor.is_non_overlapping_and_dense();
  }

  static void add_array(ModelFile& file, std::string name, Array array) {
    file.weights.push_back({std::move(name), std::move(array)});
  }

  std::string make_name(std::string name) {
    while (!names_.insert(name).second) name += "'";
    return name;
  }

  void add_views(ModelFile& file, const std::vector<const ScopedWeight*>& group) {
    ByteExtent all = find_byte_extent(group.front()->tensor);
    for (const ScopedWeight* weight : group) {
      const ByteExtent extent = find_byte_extent(weight->tensor);
      all = {std::min(all.first, extent.first), std::max(all.last, extent.last)};
    }
    all.first -= all.first % 64;  // so that every element stays aligned to its size
    const at::Tensor& first = group.front()->tensor;
    const std::string name = make_name("storage:" + group.front()->name);
    Array bytes = borrow_array(first, Dtype::u8, {all.last - all.first});
    auto* start = static_cast<std::byte*>(first.storage().mutable_data()) + all.first;
    bytes.storage = std::shared_ptr<void>(bytes.storage, start);
    add_array(file, name, std::move(bytes));
    for (const ScopedWeight* weight : group) {
      const at::Tensor& tensor = weight->tensor;
      views_.push_back({{"name", weight->name},
                        {"array", name},
                        {"dtype", dtype_name(dtype_of(tensor.scalar_type()))},
                        {"sizes", tensor.sizes().vec()},
                        {"strides", tensor.strides().vec()},
                        {"offset", tensor.storage_offset() - all.first / static_cast<int64_t>(tensor.element_size())}});
    }
  }

  void add_sparse(ModelFile& file, const ScopedWeight& weight) {
    const at::Tensor& tensor = weight.tensor;
    const Layout layout = layout_of(tensor.layout());
    std::vector<at::Tensor> parts;
    switch (layout) {
      case Layout::sparse_coo: parts = {tensor._indices(), tensor._values()}; break;
      case Layout::sparse_csr:
      case Layout::sparse_bsr: parts = {tensor.crow_indices(), tensor.col_indices(), tensor.values()}; break;
      case Layout::sparse_csc:
      case Layout::sparse_bsc: parts = {tensor.ccol_indices(), tensor.row_indices(), tensor.values()}; break;
      default:
        throw_error(ErrorKind::unsupported, "weight '", weight.name, "' has the layout ", layout_word(layout),
                    ", which is not saved; make it dense first");
    }
    Json names = Json::array();
    for (size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor dense = parts[i].contiguous();
      const std::string name = make_name(weight.name + ":" + std::to_string(i));
      add_array(file, name, borrow_array(dense, dtype_of(dense.scalar_type()), dense.sizes().vec()));
      names.push_back(name);
    }
    sparse_.push_back({{"name", weight.name},
                       {"layout", layout_word(layout)},
                       {"sizes", tensor.sizes().vec()},
                       {"arrays", names},
                       {"coalesced", layout == Layout::sparse_coo && tensor.is_coalesced()}});
  }

  std::vector<ScopedWeight> weights_;
  std::unordered_set<std::string> names_;
  Json views_ = Json::array(), sparse_ = Json::array();
};

// ---- unpacking -----------------------------------------------------------------------------------------------------
template <typename... Parts>
[[noreturn]] void refuse_file(const Parts&... parts) {
  throw_error(ErrorKind::invalid_input, "not a program that lissome saved: ", parts...);
}

const Json& require(const Json& object, const char* key) {
  if (!object.is_object()) refuse_file("the metadata of a weight is no object");
  const auto found = object.find(key);
  if (found == object.end()) refuse_file("the metadata of a weight lacks '", key, "'");
  return *found;
}

std::string require_text(const Json& object, const char* key) {
  const Json& text = require(object, key);
  if (!text.is_string()) refuse_file("metadata: '", key, "' is no text");
  return text.get<std::string>();
}

int64_t read_count(const Json& number, const char* key) {
  if (!number.is_number_unsigned() || number.get<uint64_t>() > INT64_MAX)
    refuse_file("metadata: '", key, "' is no count");
  return number.get<int64_t>();
}

Sizes require_counts(const Json& object, const char* key) {
  Sizes counts;
  const Json& list = require(object, key);
  if (!list.is_array()) refuse_file("metadata: '", key, "' is no list");
  for (const Json& number : list) counts.push_back(read_count(number, key));
  return counts;
}

// Tensors over the mapped arrays. Arrays at one address become tensors on one storage, so that tied weights stay tied.
class Unpacker {
 public:
  explicit Unpacker(const ModelFile& file) {
    for (const NamedArray& named : file.weights) {
      if (!arrays_.emplace(named.name, &named.array).second) refuse_file("two arrays are called '", named.name, "'");
      if (named.array.bytes() == 0) continue;
      int64_t& bytes = storage_bytes_[named.array.storage.get()];
      bytes = std::max(bytes, named.array.bytes());
    }
  }

  GivenTensors unpack(const Json& metadata) {
    GivenTensors given;
    given.complete = true;
    const auto add = [&given](const std::string& name, at::Tensor tensor) {
      if (!given.by_name.emplace(name, std::move(tensor)).second) refuse_file("weight '", name, "' is there twice");
    };
    if (const auto found = metadata.find("program"); found != metadata.end()) {
      for (const Json& row : require(*found, "views")) add(require_text(row, "name"), read_view(row));
      for (const Json& row : require(*found, "sparse")) add(require_text(row, "name"), read_sparse(row));
    }
    for (const auto& [name, array] : arrays_) {
      if (!used_.contains(name)) add(name, make_tensor(*array));
    }
    return given;
  }

 private:
  at::Tensor make_tensor(const Array& array) {
    const auto options = at::TensorOptions().dtype(scalar_type_of(array.dtype));
    if (array.bytes() == 0) return at::empty(array.sizes, options);
    return at::empty({0}, options).set_(storage_of(array), 0, array.sizes, contiguous_strides(array.sizes));
  }

  const c10::Storage& storage_of(const Array& array) {
    c10::Storage& storage = storages_[array.storage.get()];
    if (storage) return storage;
    auto* owner = new std::shared_ptr<void>(array.storage);
    c10::DataPtr data(
        owner->get(), owner, [](void* context) { delete static_cast<std::shared_ptr<void>*>(context); },
        at::Device(at::kCPU));
    storage = c10::Storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(storage_bytes_.at(array.storage.get())),
                           std::move(data), c10::GetCPUAllocator(), /*resizable=*/true);
    return storage;
  }

  const Array& take_array(const std::string& name) {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) refuse_file("the array '", name, "' is missing");
    used_.insert(name);
    return *found->second;
  }

  at::Tensor read_view(const Json& row) {
    const Array& array = take_array(require_text(row, "array"));
    const auto dtype = parse_dtype(require_text(row, "dtype"));
    const Sizes sizes = require_counts(row, "sizes"), strides = require_counts(row, "strides");
    const int64_t offset = read_count(require(row, "offset"), "offset");
    if (!dtype || sizes.size() != strides.size())
      refuse_file("metadata: a view has no known dtype or a stride too few");
    if (*dtype == Dtype::boolean && array.dtype != Dtype::boolean)
      refuse_file("weight '", require_text(row, "name"), "' takes bytes of ", dtype_name(array.dtype), " for bool");
    int64_t last = offset;  // the last element that the view reads
    bool fits = count_elements(sizes) > 0;
    for (size_t i = 0; i < sizes.size() && fits; ++i) {
      int64_t span = 0;
      fits = !__builtin_mul_overflow(sizes[i] - 1, strides[i], &span) && !__builtin_add_overflow(last, span, &last);
    }
    if (!fits || last >= array.bytes() / item_size(*dtype)) {
      refuse_file("weight '", require_text(row, "name"), "' reaches beyond its storage of ", array.bytes(), " bytes");
    }
    return at::empty({0}, at::TensorOptions().dtype(scalar_type_of(*dtype)))
        .set_(storage_of(array), offset, sizes, strides);
  }

  at::Tensor read_sparse(const Json& row) {
    const std::string layout_name = require_text(row, "layout");
    const auto word = find_literal(layout_name);
    const Layout* layout = word ? word->get<Layout>() : nullptr;
    const bool is_coo = layout != nullptr && *layout == Layout::sparse_coo;
    if (layout == nullptr || *layout == Layout::strided || *layout == Layout::mkldnn) {
      refuse_file("metadata: '", layout_name, "' is no sparse layout");
    }
    std::vector<at::Tensor> parts;
    const Json& names = require(row, "arrays");
    if (!names.is_array() || names.size() != (is_coo ? 2U : 3U))
      refuse_file("metadata: a sparse weight needs its arrays");
    for (const Json& name : names) {
      if (!name.is_string()) refuse_file("metadata: 'arrays' holds no text");
      parts.push_back(make_tensor(take_array(name.get<std::string>())));
    }
    const Sizes sizes = require_counts(row, "sizes");
    const Json& coalesced = require(row, "coalesced");
    if (!coalesced.is_boolean()) refuse_file("metadata: 'coalesced' is no truth value");
    // Both check every index against the sizes.
    if (is_coo) {
      at::_validate_sparse_coo_tensor_args(parts[0], parts[1], sizes, coalesced.get<bool>());
      return at::sparse_coo_tensor(parts[0], parts[1], sizes, parts[1].options().layout(at::kSparse),
                                   coalesced.get<bool>());
    }
    const at::Layout torch_layout = torch_layout_of(*layout);
    at::_validate_sparse_compressed_tensor_args(parts[0], parts[1], parts[2], sizes, torch_layout);
    return at::sparse_compressed_tensor(parts[0], parts[1], parts[2], sizes, parts[2].options().layout(torch_layout));
  }

  std::map<std::string, const Array*> arrays_;
  std::set<std::string> used_;  // by views and sparse weights
  std::map<const void*, int64_t> storage_bytes_;
  std::map<const void*, c10::Storage> storages_;
};

size_t count_weights(const Program& program) {
  size_t count = program.weights.size();
  for (const Node& node : program.nodes) {
    for (const auto& body : node.bodies) count += count_weights(*body);
  }
  return count;
}

}  // namespace

ModelFile pack_program(const Program& program) {
  ModelFile file;
  file.program = print_program(program);
  Packer(collect_weights(program)).pack(file);
  return file;
}

Program unpack_program(const ModelFile& file) {
  if (file.program.empty() && !file.plan.empty()) {
    throw_error(
        ErrorKind::unsupported, "a finished model without its program, which is needed here.\n      Make it ",
        "again from the original with --keep-original (prepare and optimize take it; in Python keep_original=True)");
  }
  try {
    const Json metadata = file.metadata.empty() ? Json::object() : parse_json(file.metadata, "metadata.json");
    if (!metadata.is_object()) refuse_file("metadata.json is no object");
    const GivenTensors given = Unpacker(file).unpack(metadata);
    Program program = parse_program_with(file.program, given);
    if (const size_t used = count_weights(program); used != given.by_name.size()) {
      refuse_file("there are ", given.by_name.size(), " weights, the program names ", used);
    }
    verify_program(program, Stage::imported);
    judge_program(program);
    check_types(program);
    return program;
  } catch (const c10::Error& error) {
    refuse_file(error.what_without_backtrace());
  } catch (const Error& error) {
    // Whatever does not verify came out of the file.
    if (error.kind() == ErrorKind::internal) refuse_file(error.message());
    throw;
  }
}

void save_program(const Program& program, const std::string& path) { save_model_file(path, pack_program(program)); }

Program load_program(const std::string& path) {
  if (const ModelKind kind = detect_model_kind(path); kind == ModelKind::pt2) {
    throw_error(ErrorKind::invalid_input, quote(path), " is ", describe_model_kind(kind),
                ", a model saved by lissome is needed here; import it first");
  } else if (kind != ModelKind::lissome) {
    refuse_model_kind(path, kind);
  }
  const ModelFile file = load_model_file(path);
  try {
    return unpack_program(file);
  } catch (const Error& error) {
    throw Error(error.kind(), quote(path) + ": " + error.message());
  }
}

}  // namespace lissome
