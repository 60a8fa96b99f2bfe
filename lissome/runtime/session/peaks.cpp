#include "lissome/runtime/session/peaks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "lissome/kernel.h"
#include "lissome/measure.h"
#include "lissome/runtime/memory/arena.h"
#include "lissome/runtime/threads/thread_pool.h"

namespace lissome {
namespace {

constexpr int kForm = 2;  // counts up when the same field comes to mean another measurement
constexpr int kPeakTries = 7;
constexpr double kTrySeconds = 5e-3;  // long enough for a clock of 25 ns, short enough to fall between neighbours
constexpr int64_t kMemoryFloats = int64_t{1} << 26;  // 256 MiB over all threads, beyond any share of a cache

// One kernel on all threads of the pool at once.
class PeakRun {
 public:
  PeakRun(KernelFunction kernel, int threads)
      : kernel_(kernel), threads_(threads), sinks_(static_cast<size_t>(threads)), done_(static_cast<size_t>(threads)) {
    call_.sinks = sinks_.data();
    call_.done = done_.data();
  }

  // Units (multiply-adds, bytes) a second, the best of several tries.
  double measure(const float* numbers, int64_t count) {
    call_.numbers = numbers;
    call_.count = count;
    call_.rounds = 1;
    while (quickest_seconds() < kTrySeconds && call_.rounds < int64_t{1} << 40) call_.rounds *= 2;
    double best = 0;
    for (int i = 0; i < kPeakTries; ++i) {
      const auto [seconds, units] = run_once();
      best = std::max(best, units / seconds);
    }
    return best;
  }

 private:
  std::pair<double, double> run_once() {
    const Stopwatch watch;
    const auto run = [](void* self, int /*stage*/, int part) {
      const auto& peak = *static_cast<PeakRun*>(self);
      peak.kernel_(&peak.call_, part, peak.threads_);
    };
    run_region(threads_, {{&threads_, 1}, run, nullptr, this});
    const double seconds = watch.seconds();
    double units = 0;
    for (int i = 0; i < threads_; ++i) units += static_cast<double>(done_[static_cast<size_t>(i)]);
    return {seconds, units};
  }

  // Of a few: a neighbour on the cores makes a run of few rounds look long enough.
  double quickest_seconds() {
    double quickest = run_once().first;
    for (int i = 1; i < 3; ++i) quickest = std::min(quickest, run_once().first);
    return quickest;
  }

  KernelFunction kernel_;
  int threads_;
  PeakCall call_;
  std::vector<float> sinks_;
  std::vector<int64_t> done_;
};

double measure_products(KernelFunction kernel, int threads) {
  return kernel == nullptr ? 0 : PeakRun(kernel, threads).measure(nullptr, 0);
}

// Half of a cache, so that the other half is free for what else lives there.
int64_t choose_count(int64_t cache_bytes) { return cache_bytes / 2 / static_cast<int64_t>(sizeof(float)) / 128 * 128; }

void measure_reads(MachinePeaks& peaks, KernelFunction kernel) {
  const int64_t most = kMemoryFloats / peaks.threads / 128 * 128;
  Arena arena;
  arena.reserve(most * peaks.threads * static_cast<int64_t>(sizeof(float)));
  auto* numbers = reinterpret_cast<float*>(arena.data());
  std::fill(numbers, numbers + most * peaks.threads, 1e-3F);
  PeakRun run(kernel, peaks.threads);
  const CacheSizes caches = cache_sizes();
  const auto measure = [&](int64_t count) { return count == 0 ? 0 : run.measure(numbers, std::min(count, most)); };
  peaks.read_l1 = measure(choose_count(caches.l1));
  peaks.read_l2 = measure(choose_count(caches.l2));
  // The third level is shared by all cores, of which a virtual machine may have few.
  const int64_t shared = choose_count(caches.l3) / 4 / peaks.threads / 128 * 128;
  peaks.read_l3 = shared <= choose_count(caches.l2) ? 0 : measure(shared);
  peaks.read_memory = measure(most);
}

double find_best(const std::function<double()>& seconds_of_one) {
  double best = seconds_of_one();
  for (int i = 1; i < kPeakTries; ++i) best = std::min(best, seconds_of_one());
  return best;
}

double measure_region(int threads) {
  constexpr int kRegions = 2000;
  return find_best([&] {
    const Stopwatch watch;
    for (int i = 0; i < kRegions; ++i) run_region(threads, {{&threads, 1}, [](void*, int, int) {}});
    return watch.seconds() / kRegions;
  });
}

double measure_stage(int threads) {
  constexpr int kStages = 2000;
  if (threads == 1) return 0;
  const std::vector<int> parts(kStages, threads);
  return find_best([&] {
    const Stopwatch watch;
    run_region(threads, {parts, [](void*, int, int) {}});
    return watch.seconds() / kStages;
  });
}

double measure_page_fault() {
  constexpr size_t kPage = 4096, kPages = 2048;
  return find_best([&] {
    void* block = mmap(nullptr, kPage * kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
      throw_error(ErrorKind::over_budget, "the system gives no 8 MiB to measure page faults with");
    madvise(block, kPage * kPages, MADV_NOHUGEPAGE);
    const Stopwatch watch;
    for (size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(block)[i * kPage] = 1;
    const double seconds = watch.seconds() / kPages;
    munmap(block, kPage * kPages);
    return seconds;
  });
}

// Fields by name, for JSON both ways.
constexpr std::array<std::pair<const char*, double MachinePeaks::*>, 10> kFields = {{
    {"multiply_f32", &MachinePeaks::multiply_f32},
    {"multiply_bf16", &MachinePeaks::multiply_bf16},
    {"multiply_u8s8", &MachinePeaks::multiply_u8s8},
    {"read_l1", &MachinePeaks::read_l1},
    {"read_l2", &MachinePeaks::read_l2},
    {"read_l3", &MachinePeaks::read_l3},
    {"read_memory", &MachinePeaks::read_memory},
    {"barrier", &MachinePeaks::barrier},
    {"region", &MachinePeaks::region},
    {"page_fault", &MachinePeaks::page_fault},
}};

// What a kept measurement holds for.
std::string describe_machine() {
  return "lissome " + std::string(lissome_version()) + ", form " + std::to_string(kForm) + ", " + processor_name() +
         ", " + describe_features() + ", " + std::to_string(usable_threads()) + " threads";
}

std::optional<MachinePeaks> read_kept(const std::string& path, int threads) {
  try {
    const Json json = parse_json(read_text_file(path, 1 << 16), path);
    if (json.at("machine") != describe_machine() || json.at("threads") != threads) return std::nullopt;
    MachinePeaks peaks;
    peaks.threads = threads;
    for (const auto& [name, field] : kFields) peaks.*field = json.at(name).get<double>();
    return peaks;
  } catch (const Error&) {  // absent or damaged: measured anew
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string peaks_path(int threads) { return cache_folder() + "/peaks-" + std::to_string(threads) + ".json"; }

void keep(const MachinePeaks& peaks) {
  if (cache_folder().empty()) return;
  Json json = to_json(peaks);
  json["machine"] = describe_machine();
  try {
    write_file(peaks_path(peaks.threads), print_json(json) + "\n");
  } catch (const Error&) {  // a cache that cannot be written is no cache
  }
}

bool is_duration(double MachinePeaks::* field) {
  return field == &MachinePeaks::barrier || field == &MachinePeaks::region || field == &MachinePeaks::page_fault;
}

}  // namespace

CacheSizes cache_sizes() {
  const auto ask = [](int name) { return std::max<int64_t>(sysconf(name), 0); };
  return {ask(_SC_LEVEL1_DCACHE_SIZE), ask(_SC_LEVEL2_CACHE_SIZE), ask(_SC_LEVEL3_CACHE_SIZE)};
}

MachinePeaks measure_peaks(int threads) {
  if (threads < 1 || threads > usable_threads()) {
    throw_error(ErrorKind::usage, "peaks of ", threads, " threads: this process may use 1 to ", usable_threads());
  }
  choose_executor();
  MachinePeaks peaks;
  peaks.threads = threads;
  const PeakKernels kernels = find_peak_kernels();
  peaks.multiply_f32 = measure_products(kernels.multiply_f32, threads);
  peaks.multiply_bf16 = measure_products(kernels.multiply_bf16, threads);
  peaks.multiply_u8s8 = measure_products(kernels.multiply_u8s8, threads);
  measure_reads(peaks, kernels.read);
  peaks.region = measure_region(threads);
  peaks.barrier = measure_stage(threads);
  peaks.page_fault = measure_page_fault();
  return peaks;
}

MachinePeaks find_peaks(int threads) {
  if (!cache_folder().empty()) {
    if (const std::optional<MachinePeaks> kept = read_kept(peaks_path(threads), threads)) return *kept;
  }
  const MachinePeaks peaks = measure_peaks(threads);
  keep(peaks);
  return peaks;
}

MachinePeaks improve_peaks(const MachinePeaks& peaks) {
  MachinePeaks better = measure_peaks(peaks.threads);
  for (const auto& [name, field] : kFields) {
    better.*field = is_duration(field) ? std::min(better.*field, peaks.*field) : std::max(better.*field, peaks.*field);
  }
  keep(better);
  return better;
}

std::string explain_int8_without_vnni(const MachinePeaks& peaks) {
  if (peaks.multiply_u8s8 == 0) return "int8 will not pay in time here: this processor has no 8-bit products";
  // What quantizing and dequantizing around the layers costs must be won back.
  constexpr double kWorthwhile = 1.5;
  const double ratio = peaks.multiply_u8s8 / peaks.multiply_f32;
  char text[256];
  std::snprintf(
      text, sizeof text,
      "int8 %s here: without VNNI 8-bit products reach %.2f of the f32 rate (%.0f against %.0f billion a second)",
      ratio < kWorthwhile ? "will hardly pay in time" : "pays less in time than it could", ratio,
      peaks.multiply_u8s8 / 1e9, peaks.multiply_f32 / 1e9);
  return text;
}

std::string explain_int8_without_vnni() {
  return can_run(Isa::avx512_vnni) ? std::string() : explain_int8_without_vnni(find_peaks(1));
}

Json to_json(const MachinePeaks& peaks) {
  Json json{{"threads", peaks.threads}};
  for (const auto& [name, field] : kFields) json[name] = peaks.*field;
  return json;
}

}  // namespace lissome
