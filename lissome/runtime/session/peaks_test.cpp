#include "lissome/runtime/session/peaks.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "lissome/kernel.h"
#include "tests/temporary_folder.h"

namespace lissome {
namespace {

bool same(const MachinePeaks& left, const MachinePeaks& right) { return to_json(left) == to_json(right); }

}  // namespace

TEST_CASE("peaks are in the order that caches and instruction sets impose") {
  const MachinePeaks peaks = measure_peaks(1);
  CHECK(peaks.multiply_f32 > 1e8);
  CHECK((peaks.multiply_bf16 > 0) == can_run(Isa::avx512_bf16));
  if (can_run(Isa::avx512_vnni)) CHECK(peaks.multiply_u8s8 > 1.5 * peaks.multiply_f32);
  CHECK(peaks.read_l1 > peaks.read_memory);
  CHECK(peaks.read_memory > 1e8);
  CHECK(peaks.barrier == 0);
  CHECK(peaks.page_fault > 1e-8);
  CHECK(peaks.page_fault < 1e-3);
}

TEST_CASE("what int8 can win without VNNI is told with the figures") {
  MachinePeaks peaks;
  peaks.multiply_f32 = 100e9;
  peaks.multiply_u8s8 = 210e9;
  CHECK(explain_int8_without_vnni(peaks).find("pays less in time than it could here: without VNNI 8-bit products reach "
                                              "2.10 of the f32 rate (210 against 100 billion a second)") !=
        std::string::npos);
  peaks.multiply_u8s8 = 92e9;
  CHECK(explain_int8_without_vnni(peaks).find("will hardly pay in time here: without VNNI 8-bit products reach 0.92") !=
        std::string::npos);
  peaks.multiply_u8s8 = 0;
  CHECK(explain_int8_without_vnni(peaks).find("no 8-bit products") != std::string::npos);
  CHECK(explain_int8_without_vnni().empty() == can_run(Isa::avx512_vnni));
}

TEST_CASE("peaks are measured once and kept for this machine") {
  const TemporaryFolder folder;
  set_cache_folder(folder.path());
  const MachinePeaks first = find_peaks(1);
  CHECK(same(find_peaks(1), first));
  write_file(folder.path() + "/peaks-1.json", "{\"threads\": 1}");  // damaged: measured anew
  CHECK(find_peaks(1).multiply_f32 > 0);
  set_cache_folder("none");
  CHECK(find_peaks(1).multiply_f32 > 0);
  CHECK(cache_folder().empty());
}

TEST_CASE("peaks that other work held back are improved, and the better ones kept") {
  const TemporaryFolder folder;
  set_cache_folder(folder.path());
  MachinePeaks peaks = find_peaks(1);
  const double memory = 2 * peaks.read_memory, fault = peaks.page_fault / 2;
  peaks.multiply_f32 /= 100, peaks.page_fault *= 100;  // as if measured beside other work
  peaks.read_memory = memory;
  const MachinePeaks better = improve_peaks(peaks);
  CHECK(better.multiply_f32 > 10 * peaks.multiply_f32);
  CHECK(better.page_fault < peaks.page_fault / 10);
  CHECK(better.page_fault > fault / 10);
  CHECK(better.read_memory >= memory);
  CHECK(same(find_peaks(1), better));
  set_cache_folder("none");
}

TEST_CASE("a number of threads that this process may not use is a usage error") {
  CHECK_THROWS_AS(measure_peaks(0), Error);
  CHECK_THROWS_AS(measure_peaks(usable_threads() + 1), Error);
}

}  // namespace lissome
