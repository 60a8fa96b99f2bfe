// The format of `model.lissome`: a zip archive whose arrays are stored, each aligned to 64 bytes, so that they are used
// straight from the mapped file; texts are deflated. This file alone reads and writes it.
//
//   member            contents
//   lissome.json      {"format": "lissome", "version": 2, "written_by": "lissome 0.1.0"}, first in the archive
//   program.txt       program text; missing in a finished model that was written without its program
//   metadata.json     an object: call tree, roles, measurements, machine
//   plan.json         the plan; the member is missing when there is none
//   arrays.json       {"weights": [row, ...], "plan": [row, ...]}
//                     row: {"name": "fc.weight", "dtype": "f32", "sizes": [64, 8], "member": "array/3"}
//                     and where zeros that pad the array are left out "padding": [[kept, zeros, times], ...], in bytes;
//                     such an array is restored in memory when the file is read
//   array/N           elements, row-major, little endian. Rows with one member share storage: tied weights are written
//                     once. The longest row fills its member exactly.
//
// A program or a plan must be there. Version 1 always held a program. A reader takes its own version and older ones;
// every other member, key or length is refused.
#include "lissome/base/model_file.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lissome/base/error.h"
#include "lissome/base/padding.h"
#include "lissome/base/version.h"
#include "lissome/base/zip.h"

namespace lissome {
namespace {

constexpr int kVersion = 2;
constexpr uint64_t kLongestText = uint64_t{1} << 30;
constexpr uint64_t kLongestHead = 4096;
// Padding that stays in a file, as a share of its arrays. What is restored costs time and copies when the file is read.
constexpr size_t kPaddingShare = 256;

template <typename... Parts>
[[noreturn]] void refuse_model(const std::string& path, const Parts&... parts) {
  throw_error(ErrorKind::invalid_input, quote(path), ": not a model that lissome reads: ", parts...);
}

const Json& require_field(const Json& object, const char* key, Json::value_t type, const std::string& path,
                          std::string_view where) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) refuse_model(path, where, " has no '", key, "'.");
  const bool is_number = type == Json::value_t::number_unsigned && found->is_number_unsigned();
  if (found->type() != type && !is_number) refuse_model(path, where, ": '", key, "' has the wrong type.");
  return *found;
}

std::string read_member(const ZipReader& zip, std::string_view name, uint64_t limit) {
  const ZipMember* member = zip.find(name);
  if (member == nullptr) refuse_model(zip.file()->path(), "the member ", quote(name), " is missing.");
  return zip.read_text(*member, limit);
}

void read_head(const ZipReader& zip, ModelFile* model) {
  const std::string& path = zip.file()->path();
  if (zip.find("lissome.json") == nullptr)
    refuse_model(path,
                 "the archive has no member 'lissome.json'. Import a PyTorch export (.pt2) with `lissome prepare`.");
  const Json head = parse_json(read_member(zip, "lissome.json", kLongestHead), quote(path) + ", lissome.json", 4, 100);
  if (require_field(head, "format", Json::value_t::string, path, "lissome.json") != "lissome")
    refuse_model(path, "lissome.json names another format.");
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
        refuse_model(path_, "two arrays are called ", quote(arrays.back().name), ".");
    }
    return arrays;
  }

  void check_complete() const {
    for (const auto& [name, part] : parts_)
      if (part.used != part.bytes.size())
        refuse_model(path_, "member ", quote(name), " has ", part.bytes.size(), " bytes, its arrays use ", part.used,
                     ".");
    for (const ZipMember& member : zip_.members()) {
      constexpr std::string_view kTexts[] = {"lissome.json", "program.txt", "metadata.json", "plan.json",
                                             "arrays.json"};
      const bool is_text = std::find(std::begin(kTexts), std::end(kTexts), member.name) != std::end(kTexts);
      if (!is_text && parts_.count(member.name) == 0)
        refuse_model(path_, "the member ", quote(member.name), " belongs to nothing.");
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
    if (!dtype) refuse_model(path_, where, " has the unknown type ", quote(word), ".");
    Sizes sizes;
    for (const Json& size : require_field(row, "sizes", Json::value_t::array, path_, where)) {
      if (!size.is_number_unsigned() || size.get<uint64_t>() > INT64_MAX)
        refuse_model(path_, where, " has a size ", print_json(size), ".");
      sizes.push_back(size.get<int64_t>());
    }
    const auto bytes = count_bytes(*dtype, sizes);
    if (!bytes) refuse_model(path_, where, " has sizes ", format_sizes(sizes), " that overflow 63 bits.");
    const auto& member =
        require_field(row, "member", Json::value_t::string, path_, where).get_ref<const std::string&>();
    if (const auto padding = row.find("padding"); padding != row.end()) {
      const std::vector<PaddedRun> runs = read_padding(*padding, where, *bytes);
      if (!padded_.insert(member).second) refuse_model(path_, where, " shares a member with another padded array.");
      return {name, restore(take(member, where, *dtype, static_cast<size_t>(measure_padding(runs)->kept)), runs,
                            make_array(*dtype, sizes))};
    }
    const auto data = take(member, where, *dtype, static_cast<size_t>(*bytes));
    if (data.empty()) return {name, make_array(*dtype, sizes)};
    auto owner = std::const_pointer_cast<MappedFile>(zip_.file());
    return {name, {*dtype, sizes, std::shared_ptr<void>(owner, const_cast<std::byte*>(data.data()))}};
  }

  std::vector<PaddedRun> read_padding(const Json& rows, const std::string& where, int64_t bytes) const {
    std::vector<PaddedRun> runs;
    const auto is_count = [](const Json& number) {
      return number.is_number_unsigned() && number.get<uint64_t>() <= INT64_MAX;
    };
    for (const Json& row : rows) {
      if (!row.is_array() || row.size() != 3 || !std::all_of(row.begin(), row.end(), is_count))
        refuse_model(path_, where, ": 'padding' has a run other than three counts.");
      runs.push_back({row[0].get<int64_t>(), row[1].get<int64_t>(), row[2].get<int64_t>()});
    }
    const auto size = measure_padding(runs);
    if (!size || size->all != bytes)
      refuse_model(path_, where, ": the runs of 'padding' do not make up its ", bytes, " bytes, or more than ",
                   kMostPadding, " times as many as they keep.");
    return runs;
  }

  // The file's own pages are read no more.
  Array restore(std::span<const std::byte> kept, const std::vector<PaddedRun>& runs, Array array) const {
    restore_padding(kept, runs, array.data<std::byte>());
    zip_.file()->release(kept);
    return array;
  }

  std::span<const std::byte> take(const std::string& member, const std::string& where, Dtype dtype, size_t bytes) {
    constexpr std::string_view kPrefix = "array/";
    const ZipMember* found = member.compare(0, kPrefix.size(), kPrefix) == 0 ? zip_.find(member) : nullptr;
    if (found == nullptr) refuse_model(path_, where, " lies in the member ", quote(member), ", which is not there.");
    const auto [part, is_new] = parts_.try_emplace(member);
    if (is_new) part->second.bytes = zip_.view(*found);
    const auto all = part->second.bytes;
    if (bytes > all.size())
      refuse_model(path_, where, " needs ", bytes, " bytes, member ", quote(member), " has ", all.size(), ".");
    if (reinterpret_cast<uintptr_t>(all.data()) % 64 != 0)
      refuse_model(path_, "member ", quote(member), " is not aligned to 64 bytes.");
    part->second.used = std::max(part->second.used, bytes);
    const auto data = all.first(bytes);
    if (dtype == Dtype::boolean && std::any_of(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; }))
      refuse_model(path_, where, " is bool and holds a byte other than 0 and 1.");
    return data;
  }

  const ZipReader& zip_;
  const std::string& path_;
  std::map<std::string, Part> parts_;
  std::set<std::string> padded_;  // members; of one array each, so that memory stays in proportion to the file
};

// Numbers storages in the order of their first use; one that several arrays share is as long as the longest.
class ArrayWriter {
 public:
  explicit ArrayWriter(const ModelFile& model) : weights_(place(model.weights)), plan_(place(model.plan_arrays)) {
    choose_padding();
  }

  Json describe() const { return {{"weights", describe(weights_)}, {"plan", describe(plan_)}}; }

  void write(ZipWriter* zip) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const std::string name = "array/" + std::to_string(i);
      if (part.padding.empty()) {
        zip->add(name, part.bytes);
      } else {
        zip->add(name, remove_padding(part.bytes, part.padding));
      }
    }
  }

 private:
  struct Part {
    std::span<const std::byte> bytes;
    int rows = 0;
    std::vector<PaddedRun> padding;
  };
  struct Row {
    const NamedArray* named;
    size_t part;
  };

  std::vector<Row> place(const std::vector<NamedArray>& arrays) {
    std::vector<Row> rows;
    for (const NamedArray& named : arrays) {
      const Array& array = named.array;
      // Empty arrays may have any address: each is its own.
      const auto key = array.bytes() == 0 ? std::pair<const void*, size_t>(nullptr, parts_.size())
                                          : std::pair<const void*, size_t>(array.storage.get(), 0);
      const auto [index, is_new] = indices_.try_emplace(key, parts_.size());
      if (is_new) parts_.push_back({});
      Part& part = parts_[index->second];
      ++part.rows;
      if (static_cast<size_t>(array.bytes()) > part.bytes.size())
        part.bytes = {static_cast<const std::byte*>(array.storage.get()), static_cast<size_t>(array.bytes())};
      rows.push_back({&named, index->second});
    }
    return rows;
  }

  // Where the most is saved first, until little padding is left.
  void choose_padding() {
    struct Saving {
      size_t bytes, part;
      std::vector<PaddedRun> runs;
    };
    std::vector<Saving> savings;
    size_t all = 0, padding = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      all += parts_[i].bytes.size();
      if (parts_[i].rows > 1) continue;
      std::vector<PaddedRun> runs = find_padding(parts_[i].bytes);
      if (runs.empty()) continue;
      const size_t saved = parts_[i].bytes.size() - static_cast<size_t>(measure_padding(runs)->kept);
      padding += saved;
      savings.push_back({saved, i, std::move(runs)});
    }
    const auto saves_more = [](const Saving& a, const Saving& b) { return a.bytes > b.bytes; };
    std::stable_sort(savings.begin(), savings.end(), saves_more);
    for (Saving& saving : savings) {
      if (padding <= all / kPaddingShare) return;
      padding -= saving.bytes;
      parts_[saving.part].padding = std::move(saving.runs);
    }
  }

  Json describe(const std::vector<Row>& rows) const {
    Json list = Json::array();
    for (const auto& [named, part] : rows) {
      Json row = {{"name", named->name},
                  {"dtype", dtype_name(named->array.dtype)},
                  {"sizes", named->array.sizes},
                  {"member", "array/" + std::to_string(part)}};
      for (const PaddedRun& run : parts_[part].padding) row["padding"].push_back({run.kept, run.zeros, run.times});
      list.push_back(std::move(row));
    }
    return list;
  }

  std::map<std::pair<const void*, size_t>, size_t> indices_;
  std::vector<Part> parts_;
  std::vector<Row> weights_, plan_;
};

ModelFile read_model_file(const ZipReader& zip, const std::string& path) {
  ModelFile model;
  read_head(zip, &model);
  const bool has_plan = zip.find("plan.json") != nullptr;
  if (has_plan) model.plan = read_member(zip, "plan.json", kLongestText);
  if (!has_plan || zip.find("program.txt") != nullptr) model.program = read_member(zip, "program.txt", kLongestText);
  if (!is_utf8(model.program)) refuse_model(path, "program.txt is not UTF-8.");
  model.metadata = read_member(zip, "metadata.json", kLongestText);
  const Json table = parse_json(read_member(zip, "arrays.json", kLongestText), quote(path) + ", arrays.json", 8);
  ArrayReader reader(zip);
  model.weights = reader.read(require_field(table, "weights", Json::value_t::array, path, "arrays.json"));
  model.plan_arrays = reader.read(require_field(table, "plan", Json::value_t::array, path, "arrays.json"));
  reader.check_complete();
  return model;
}

void write_members(const ModelFile& model, ZipWriter* zip) {
  const ArrayWriter arrays(model);
  const Json head = {
      {"format", "lissome"}, {"version", kVersion}, {"written_by", "lissome " + std::string(lissome_version())}};
  zip->add("lissome.json", print_json(head));
  if (!model.program.empty()) zip->add_text("program.txt", model.program);
  zip->add_text("metadata.json", model.metadata.empty() ? "{}" : model.metadata);
  if (!model.plan.empty()) zip->add_text("plan.json", model.plan);
  zip->add_text("arrays.json", print_json(arrays.describe()));
  arrays.write(zip);
}

}  // namespace

ModelFile load_model_file(const std::string& path) { return read_model_file(ZipReader::open(path), path); }

std::optional<ModelFile> try_load_model_file(const std::string& path) {
  constexpr std::string_view kZipMagic("PK\x03\x04", 4);
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4));
  if (start != kZipMagic) return std::nullopt;
  const ZipReader zip = ZipReader::from_file(file);
  if (zip.find("lissome.json") == nullptr) return std::nullopt;
  return read_model_file(zip, path);
}

void save_model_file(const std::string& path, const ModelFile& model) { seal_model_file(path, model)->commit(); }

std::unique_ptr<AtomicFile> seal_model_file(const std::string& path, const ModelFile& model) {
  ZipWriter zip(path);
  write_members(model, &zip);
  return zip.seal();
}

int64_t count_model_file(const ModelFile& model) {
  ZipWriter zip;
  write_members(model, &zip);
  return static_cast<int64_t>(zip.finish());
}

}  // namespace lissome
