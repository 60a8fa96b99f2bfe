// The format of a snapshot: a zip archive of stored members with their CRC32.
//
//   member          contents
//   snapshot.json   {"format": "lissome snapshot", "version": 1, "written_by": "lissome 0.1.0",
//                    "facts": {"batch": "64", ...},
//                    "entries": [{"name": "weight/fc.bias", "dtype": "f32", "sizes": [64]}, ...]}
//   entry/N         the elements of entry N, row-major, little endian
//
// A reader takes its own version and older ones.
#include "lissome/train/loop/snapshot_file.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "lissome/base.h"
#include "lissome/program.h"

namespace lissome {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kFormat = "lissome snapshot";
constexpr uint64_t kLongestTable = uint64_t{1} << 28;

template <typename... Parts>
[[noreturn]] void refuse(const std::string& path, const Parts&... parts) {
  throw_error(ErrorKind::invalid_input, quote(path), ": not a snapshot that lissome reads: ", parts...);
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

const Json& require_field(const Json& object, const char* key, Json::value_t type, const std::string& path) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) refuse(path, "snapshot.json has no ", quote(key));
  const bool is_number = type == Json::value_t::number_unsigned && found->is_number_unsigned();
  if (found->type() != type && !is_number) refuse(path, "snapshot.json: ", quote(key), " has the wrong type");
  return *found;
}

at::Tensor read_entry(const ZipReader& zip, const Json& row, const std::string& member_name) {
  const std::string& path = zip.file()->path();
  const auto& word = require_field(row, "dtype", Json::value_t::string, path).get_ref<const std::string&>();
  const std::optional<Dtype> dtype = parse_dtype(word);
  if (!dtype) refuse(path, "the dtype ", quote(word), " is unknown");
  Sizes sizes;
  for (const Json& size : require_field(row, "sizes", Json::value_t::array, path)) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > INT64_MAX) refuse(path, "a size is not a count");
    sizes.push_back(size.get<int64_t>());
  }
  const std::optional<int64_t> bytes = count_bytes(*dtype, sizes);
  const ZipMember* member = zip.find(member_name);
  if (member == nullptr) refuse(path, "the member ", quote(member_name), " is missing");
  if (!bytes || static_cast<uint64_t>(*bytes) != member->size)
    refuse(path, member_name, " has ", member->size, " bytes, which do not fit its sizes ", format_sizes(sizes));
  at::Tensor tensor = at::empty(sizes, at::TensorOptions().dtype(scalar_type_of(*dtype)));
  zip.read_into(*member, {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()});
  return tensor;
}

std::string entry_member(size_t index) { return "entry/" + std::to_string(index); }

}  // namespace

void Snapshot::add_number(const std::string& name, double number) { add_numbers(name, {number}); }

void Snapshot::add_count(const std::string& name, int64_t count) {
  add(name, at::empty({}, at::TensorOptions().dtype(at::kLong)).fill_(count));
}

void Snapshot::add_numbers(const std::string& name, const std::vector<double>& numbers) {
  const at::Tensor tensor = at::empty({std::ssize(numbers)}, at::TensorOptions().dtype(at::kDouble));
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<double>());
  add(name, tensor);
}

void Snapshot::add_section(const std::string& section, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) add(section + "/" + name, tensor);
}

const at::Tensor* Snapshot::find(const std::string& name) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == name; });
  return found == entries.end() ? nullptr : &found->second;
}

const at::Tensor& Snapshot::require(const std::string& name) const {
  const at::Tensor* tensor = find(name);
  if (tensor == nullptr) throw_error(ErrorKind::invalid_input, "the snapshot lacks ", quote(name));
  return *tensor;
}

const at::Tensor& Snapshot::require_like(const std::string& name, const at::Tensor& model) const {
  const at::Tensor& tensor = require(name);
  if (tensor.sizes() != model.sizes() || tensor.scalar_type() != model.scalar_type())
    throw_error(ErrorKind::invalid_input, "the snapshot's ", quote(name), " is ",
                dtype_name(dtype_of(tensor.scalar_type())), format_sizes(tensor.sizes().vec()), ", the model's ",
                dtype_name(dtype_of(model.scalar_type())), format_sizes(model.sizes().vec()));
  return tensor;
}

std::vector<double> Snapshot::require_numbers(const std::string& name) const {
  const at::Tensor& tensor = require(name);
  if (tensor.scalar_type() != at::kDouble || tensor.dim() != 1)
    throw_error(ErrorKind::invalid_input, "the snapshot's ", quote(name), " is not a list of numbers");
  const auto* first = tensor.const_data_ptr<double>();
  return {first, first + tensor.numel()};
}

double Snapshot::require_number(const std::string& name) const {
  const std::vector<double> numbers = require_numbers(name);
  if (numbers.size() != 1) throw_error(ErrorKind::invalid_input, "the snapshot's ", quote(name), " is not a number");
  return numbers[0];
}

int64_t Snapshot::require_count(const std::string& name) const {
  const at::Tensor& tensor = require(name);
  if (tensor.scalar_type() != at::kLong || tensor.numel() != 1)
    throw_error(ErrorKind::invalid_input, "the snapshot's ", quote(name), " is not a count");
  const int64_t count = *tensor.const_data_ptr<int64_t>();
  if (count < 0 || count > kMostCount)
    throw_error(ErrorKind::invalid_input, "the snapshot's ", quote(name), " is ", count, ", which is not a count");
  return count;
}

NamedTensors Snapshot::read_section(const std::string& section) const {
  const std::string prefix = section + "/";
  NamedTensors tensors;
  for (const auto& [name, tensor] : entries) {
    if (name.starts_with(prefix)) tensors.emplace_back(name.substr(prefix.size()), tensor);
  }
  return tensors;
}

void save_snapshot(const std::string& path, const Snapshot& snapshot) {
  Json facts = Json::object(), rows = Json::array();
  for (const auto& [name, text] : snapshot.facts) facts[name] = text;
  std::vector<at::Tensor> dense;
  for (const auto& [name, tensor] : snapshot.entries) {
    dense.push_back(tensor.to(at::kCPU).contiguous());
    rows.push_back(
        {{"name", name}, {"dtype", dtype_name(dtype_of(tensor.scalar_type()))}, {"sizes", tensor.sizes().vec()}});
  }
  ZipWriter zip(path);
  zip.add("snapshot.json", print_json({{"format", kFormat},
                                       {"version", kVersion},
                                       {"written_by", "lissome " + std::string(lissome_version())},
                                       {"facts", facts},
                                       {"entries", rows}}));
  for (size_t i = 0; i < dense.size(); ++i) zip.add(entry_member(i), bytes_of(dense[i]));
  zip.commit();
}

Snapshot load_snapshot(const std::string& path) {
  const ZipReader zip = ZipReader::open(path);
  const ZipMember* head = zip.find("snapshot.json");
  if (head == nullptr) refuse(path, "the member 'snapshot.json' is missing");
  const Json table = parse_json(zip.read_text(*head, kLongestTable), quote(path) + ", snapshot.json", 8);
  if (require_field(table, "format", Json::value_t::string, path) != kFormat) refuse(path, "its format is unknown");
  const auto version = require_field(table, "version", Json::value_t::number_unsigned, path).get<uint64_t>();
  if (version < 1 || version > kVersion)
    refuse(path, "its version is ", version, "; this lissome reads 1 to ", kVersion);
  Snapshot snapshot;
  for (const auto& [name, text] : require_field(table, "facts", Json::value_t::object, path).items()) {
    if (!text.is_string()) refuse(path, "the fact ", quote(name), " is not a text");
    snapshot.facts.emplace_back(name, text.get<std::string>());
  }
  const Json& rows = require_field(table, "entries", Json::value_t::array, path);
  std::set<std::string> names;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& name = require_field(rows[i], "name", Json::value_t::string, path).get_ref<const std::string&>();
    if (!names.insert(name).second) refuse(path, "two entries are called ", quote(name));
    snapshot.add(name, read_entry(zip, rows[i], entry_member(i)));
  }
  if (zip.members().size() != rows.size() + 1) refuse(path, "it has members that belong to no entry");
  return snapshot;
}

}  // namespace lissome
