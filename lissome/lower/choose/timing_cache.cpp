#include "lissome/lower/choose/timing_cache.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "lissome/base.h"
#include "lissome/kernel.h"

namespace lissome {
namespace {

constexpr size_t kMostKinds = 4096, kMostChoices = 256;
constexpr size_t kLargestFile = size_t{32} << 20;

// Fowler, Noll and Vo's hash: enough to tell builds and programs apart, no defence against an attacker.
uint64_t hash_bytes(const void* data, size_t size) {
  uint64_t hash = 0xCBF29CE484222325;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001B3;
  return hash;
}

std::string print_hash(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

// The file that holds our kernels, by its contents: equal sources make equal files.
std::string describe_kernels() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(find_kernel("linear_f32").function), &info) == 0) return "-";
  const std::shared_ptr<const MappedFile> file = MappedFile::open(info.dli_fname);
  return print_hash(hash_bytes(file->bytes().data(), file->bytes().size()));
}

// libtorch by size and time: it is too large to be read whole.
std::string describe_libtorch() {
  void* library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return "-";
  const link_map* place = nullptr;
  struct stat facts{};
  const bool found =
      dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&place)) == 0 && stat(place->l_name, &facts) == 0;
  dlclose(library);
  return found ? std::to_string(facts.st_size) + "." + std::to_string(facts.st_mtime) : "-";
}

std::string describe_machine(int threads) {
  static const std::string kBuild = describe_kernels() + ", libtorch " + describe_libtorch();
  return processor_name() + ", " + describe_features() + ", " + std::to_string(threads) + " threads, kernels " + kBuild;
}

Json write_time(const CandidateTime& time) {
  return time.failure.empty() ? Json(time.nanoseconds) : Json(time.failure);
}

CandidateTime read_time(const Json& json) {
  if (json.is_string()) return {0, json.get<std::string>()};
  return {json.get<double>(), {}};
}

// Null when there is no such file, it is damaged, or it holds for another machine: everything is timed anew.
Json read_file(const std::string& path, const std::string& machine) {
  try {
    Json json = parse_json(read_text_file(path, kLargestFile), path);
    if (json.is_object() && json.value("machine", "") == machine) return json;
  } catch (const Error&) {
  } catch (const Json::exception&) {
  }
  return {};
}

// At the end; the oldest go where there are too many.
void add_young(Json& rows, const std::string& name, Json row, size_t most) {
  rows.erase(name);
  while (rows.size() >= most) rows.erase(rows.begin());
  rows[name] = std::move(row);
}

}  // namespace

std::string hash_text(const std::string& text) { return print_hash(hash_bytes(text.data(), text.size())); }

TimingCache::TimingCache(int threads) {
  const std::string folder = cache_folder();
  if (folder.empty()) return;
  if (threads == 0) threads = usable_cores();
  path_ = folder + "/timings-" + std::to_string(threads) + ".json";
  machine_ = describe_machine(threads);
  const Json json = read_file(path_, machine_);
  if (json.is_null()) return;
  try {
    for (const auto& [kind, row] : json.at("times").items()) {
      for (const auto& [kernel, time] : row.items()) kept_.times[kind][kernel] = read_time(time);
    }
    for (const auto& [key, row] : json.at("choices").items()) {
      Preferences& chosen = kept_.choices[key];
      for (const auto& [node, kernel] : row.items()) chosen[node] = kernel.get<std::string>();
    }
  } catch (const Json::exception&) {
    kept_ = {};
  }
}

std::map<std::string, CandidateTime> TimingCache::find_times(const std::string& kind) const {
  const auto row = kept_.times.find(kind);
  return row == kept_.times.end() ? std::map<std::string, CandidateTime>() : row->second;
}

void TimingCache::keep_times(const std::string& kind, const std::map<std::string, CandidateTime>& times) {
  fresh_.times[kind] = times;
}

std::optional<Preferences> TimingCache::find_choice(const std::string& key) const {
  const auto row = kept_.choices.find(key);
  return row == kept_.choices.end() ? std::nullopt : std::optional(row->second);
}

void TimingCache::keep_choice(const std::string& key, const Preferences& chosen) { fresh_.choices[key] = chosen; }

void TimingCache::save() const {
  if (path_.empty() || (fresh_.times.empty() && fresh_.choices.empty())) return;
  Json json = read_file(path_, machine_);
  for (const char* part : {"times", "choices"}) {
    if (!json.is_object() || !json.contains(part) || !json[part].is_object()) json[part] = Json::object();
  }
  json["machine"] = machine_;
  for (const auto& [kind, times] : fresh_.times) {
    Json row = Json::object();
    for (const auto& [kernel, time] : times) row[kernel] = write_time(time);
    add_young(json["times"], kind, std::move(row), kMostKinds);
  }
  for (const auto& [key, chosen] : fresh_.choices) add_young(json["choices"], key, Json(chosen), kMostChoices);
  try {
    write_file(path_, print_json(json) + "\n");
  } catch (const Error&) {
  }
}

}  // namespace lissome
