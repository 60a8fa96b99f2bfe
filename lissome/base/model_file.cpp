// The format of `model.lissome`: a zip archive of stored members, each aligned to 64 bytes, so that arrays are used
// straight from the mapped file. This file alone reads and writes it.
//
//   member            contents
//   lissome.json      {"format": "lissome", "version": 1, "written_by": "lissome 0.1.0"}, first in the archive
//   program.txt       program text
//   metadata.json     an object: call tree, roles, measurements, machine
//   plan.json         the plan; the member is missing when there is none
//   arrays.json       {"weights": [row, ...], "plan": [row, ...]}
//                     row: {"name": "fc.weight", "dtype": "f32", "sizes": [64, 8], "member": "array/3"}
//   array/N           elements, row-major, little endian. Rows with one member share storage: tied weights are written
//                     once. The longest row fills its member exactly.
//
// A reader takes its own version and older ones; every other member, key or length is refused.
#include "lissome/base/model_file.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lissome/base/error.h"
#include "lissome/base/version.h"
#include "lissome/base/zip.h"

namespace lissome {
namespace {

constexpr int kVersion = 1;
constexpr uint64_t kLongestText = uint64_t{1} << 30;
constexpr uint64_t kLongestHead = 4096;

template <typename... Parts>
[[noreturn]] void refuse(const std::string& path, const Parts&... parts) {
  throw_error(ErrorKind::invalid_input, quote(path), ": not a model that lissome reads: ", parts...);
}

const Json& require_field(const Json& object, const char* key, Json::value_t type, const std::string& path,
                          std::string_view where) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) refuse(path, where, " has no '", key, "'.");
  const bool is_number = type == Json::value_t::number_unsigned && found->is_number_unsigned();
  if (found->type() != type && !is_number) refuse(path, where, ": '", key, "' has the wrong type.");
  return *found;
}

std::string read_member(const ZipReader& zip, std::string_view name, uint64_t limit) {
  const ZipMember* member = zip.find(name);
  if (member == nullptr) refuse(zip.file()->path(), "the member ", quote(name), " is missing.");
  return zip.read_text(*member, limit);
}

void read_head(const ZipReader& zip, ModelFile* model) {
  const std::string& path = zip.file()->path();
  if (zip.find("lissome.json") == nullptr)
    refuse(path, "the archive has no member 'lissome.json'. Import a PyTorch export (.pt2) with `lissome prepare`.");
  const Json head = parse_json(read_member(zip, "lissome.json", kLongestHead), quote(path) + ", lissome.json", 4, 100);
  if (require_field(head, "format", Json::value_t::string, path, "lissome.json") != "lissome")
    refuse(path, "lissome.json names another format.");
  model->written_by = require_field(head, "written_by", Json::value_t::string, path, "lissome.json").get<std::string>();
  const auto version =
      require_field(head, "version", Json::value_t::number_unsigned, path, "lissome.json").get<uint64_t>();
  if (version < 1 || version > kVersion)
    throw_error(ErrorKind::unsupported, quote(path), ": format version ", version, ", written by ",
                quote(model->written_by), "; this is lissome ", lissome_version(), ", which reads versions 1 to ",
                kVersion, ". Use that version, or a newer one.");
  model->version = static_cast<int>(version);
}

// Hands out the mapped bytes of each member once, and remembers how much of it the rows use.
class ArrayReader {
 public:
  explicit ArrayReader(const ZipReader& zip) : zip_(zip), path_(zip.file()->path()) {}

  std::vector<NamedArray> read(const Json& rows) {
    std::vector<NamedArray> arrays;
    std::set<std::string> names;
    for (const Json& row : rows) {
      arrays.push_back(read_row(row));
      if (!names.insert(arrays.back().name).second)
        refuse(path_, "two arrays are called ", quote(arrays.back().name), ".");
    }
    return arrays;
  }

  void check_complete() const {
    for (const auto& [name, part] : parts_)
      if (part.used != part.bytes.size())
        refuse(path_, "member ", quote(name), " has ", part.bytes.size(), " bytes, its arrays use ", part.used, ".");
    for (const ZipMember& member : zip_.members()) {
      constexpr std::string_view kTexts[] = {"lissome.json", "program.txt", "metadata.json", "plan.json",
                                             "arrays.json"};
      const bool is_text = std::find(std::begin(kTexts), std::end(kTexts), member.name) != std::end(kTexts);
      if (!is_text && parts_.count(member.name) == 0)
        refuse(path_, "the member ", quote(member.name), " belongs to nothing.");
    }
  }

 private:
  struct Part {
    std::span<const std::byte> bytes;
    size_t used = 0;
  };

  NamedArray read_row(const Json& row) {
    const auto& name =
        require_field(row, "name", Json::value_t::string, path_, "arrays.json").get_ref<const std::string&>();
    const std::string where = "array " + quote(name);
    const auto& word = require_field(row, "dtype", Json::value_t::string, path_, where).get_ref<const std::string&>();
    const auto dtype = parse_dtype(word);
    if (!dtype) refuse(path_, where, " has the unknown type ", quote(word), ".");
    Sizes sizes;
    for (const Json& size : require_field(row, "sizes", Json::value_t::array, path_, where)) {
      if (!size.is_number_unsigned() || size.get<uint64_t>() > INT64_MAX)
        refuse(path_, where, " has a size ", print_json(size), ".");
      sizes.push_back(size.get<int64_t>());
    }
    const auto bytes = count_bytes(*dtype, sizes);
    if (!bytes) refuse(path_, where, " has sizes ", format_sizes(sizes), " that overflow 63 bits.");
    const auto& member =
        require_field(row, "member", Json::value_t::string, path_, where).get_ref<const std::string&>();
    const auto data = take(member, where, *dtype, static_cast<size_t>(*bytes));
    if (data.empty()) return {name, make_array(*dtype, sizes)};
    auto owner = std::const_pointer_cast<MappedFile>(zip_.file());
    return {name, {*dtype, sizes, std::shared_ptr<void>(owner, const_cast<std::byte*>(data.data()))}};
  }

  std::span<const std::byte> take(const std::string& member, const std::string& where, Dtype dtype, size_t bytes) {
    constexpr std::string_view kPrefix = "array/";
    const ZipMember* found = member.compare(0, kPrefix.size(), kPrefix) == 0 ? zip_.find(member) : nullptr;
    if (found == nullptr) refuse(path_, where, " lies in the member ", quote(member), ", which is not there.");
    const auto [part, is_new] = parts_.try_emplace(member);
    if (is_new) part->second.bytes = zip_.view(*found);
    const auto all = part->second.bytes;
    if (bytes > all.size())
      refuse(path_, where, " needs ", bytes, " bytes, member ", quote(member), " has ", all.size(), ".");
    if (reinterpret_cast<uintptr_t>(all.data()) % 64 != 0)
      refuse(path_, "member ", quote(member), " is not aligned to 64 bytes.");
    part->second.used = std::max(part->second.used, bytes);
    const auto data = all.first(bytes);
    if (dtype == Dtype::boolean && std::any_of(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; }))
      refuse(path_, where, " is bool and holds a byte other than 0 and 1.");
    return data;
  }

  const ZipReader& zip_;
  const std::string& path_;
  std::map<std::string, Part> parts_;
};

// Numbers storages in the order of their first use; one that several arrays share is as long as the longest.
class ArrayWriter {
 public:
  Json add(const std::vector<NamedArray>& arrays) {
    Json rows = Json::array();
    for (const NamedArray& named : arrays) {
      const Array& array = named.array;
      // Empty arrays may have any address: each is its own.
      const auto key = array.bytes() == 0 ? std::pair<const void*, size_t>(nullptr, parts_.size())
                                          : std::pair<const void*, size_t>(array.storage.get(), 0);
      const auto [index, is_new] = indices_.try_emplace(key, parts_.size());
      if (is_new) parts_.push_back({});
      auto& part = parts_[index->second];
      if (static_cast<size_t>(array.bytes()) > part.size())
        part = {static_cast<const std::byte*>(array.storage.get()), static_cast<size_t>(array.bytes())};
      rows.push_back({{"name", named.name},
                      {"dtype", dtype_name(array.dtype)},
                      {"sizes", array.sizes},
                      {"member", "array/" + std::to_string(index->second)}});
    }
    return rows;
  }

  void write(ZipWriter* zip) const {
    for (size_t i = 0; i < parts_.size(); ++i) zip->add("array/" + std::to_string(i), parts_[i]);
  }

 private:
  std::map<std::pair<const void*, size_t>, size_t> indices_;
  std::vector<std::span<const std::byte>> parts_;
};

}  // namespace

ModelFile load_model_file(const std::string& path) {
  const ZipReader zip = ZipReader::open(path);
  ModelFile model;
  read_head(zip, &model);
  model.program = read_member(zip, "program.txt", kLongestText);
  if (!is_utf8(model.program)) refuse(path, "program.txt is not UTF-8.");
  model.metadata = read_member(zip, "metadata.json", kLongestText);
  if (zip.find("plan.json") != nullptr) model.plan = read_member(zip, "plan.json", kLongestText);
  const Json table = parse_json(read_member(zip, "arrays.json", kLongestText), quote(path) + ", arrays.json", 8);
  ArrayReader reader(zip);
  model.weights = reader.read(require_field(table, "weights", Json::value_t::array, path, "arrays.json"));
  model.plan_arrays = reader.read(require_field(table, "plan", Json::value_t::array, path, "arrays.json"));
  reader.check_complete();
  return model;
}

void save_model_file(const std::string& path, const ModelFile& model) { seal_model_file(path, model)->commit(); }

std::unique_ptr<AtomicFile> seal_model_file(const std::string& path, const ModelFile& model) {
  ArrayWriter arrays;
  Json table;
  table["weights"] = arrays.add(model.weights);
  table["plan"] = arrays.add(model.plan_arrays);
  const Json head = {
      {"format", "lissome"}, {"version", kVersion}, {"written_by", "lissome " + std::string(lissome_version())}};
  ZipWriter zip(path);
  zip.add("lissome.json", print_json(head));
  zip.add("program.txt", model.program);
  zip.add("metadata.json", model.metadata.empty() ? "{}" : model.metadata);
  if (!model.plan.empty()) zip.add("plan.json", model.plan);
  zip.add("arrays.json", print_json(table));
  arrays.write(&zip);
  return zip.seal();
}

}  // namespace lissome
