#include "lissome/base/processor.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "lissome/base/cache_folder.h"
#include "lissome/base/environment.h"
#include "lissome/base/file.h"
#include "lissome/base/processor_quota.h"
#include "lissome/base/processor_topology.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

// Writes files of a made-up machine: path below the root, then its text.
void write_tree(const TemporaryFolder& root, const std::vector<std::pair<std::string, std::string>>& files) {
  for (const auto& [path, text] : files) {
    std::filesystem::create_directories(std::filesystem::path(root.file(path)).parent_path());
    root.write(path, text);
  }
}

}  // namespace

TEST_CASE("masks deny what is above them") {
  const bool avx2 = has(Feature::avx2), avx512 = has(Feature::avx512);
  mask_features("none");
  for (int i = 0; i <= static_cast<int>(Feature::amx_int8); ++i) CHECK_FALSE(has(static_cast<Feature>(i)));
  CHECK(describe_features() == "none");
  mask_features("avx2");
  CHECK(has(Feature::avx2) == avx2);
  CHECK_FALSE(has(Feature::avx512));
  mask_features("avx512");
  CHECK(has(Feature::avx512) == avx512);
  CHECK_FALSE(has(Feature::avx512_vnni));
  mask_features("bf16");
  CHECK_FALSE(has(Feature::amx_int8));
  EXPECT_ERROR(usage, mask_features("sse9"), "sse9", "avx512");
  mask_features("amx");
  CHECK(has(Feature::avx2) == avx2);
  CHECK((has(Feature::avx2) || !has(Feature::avx512)));
}

TEST_CASE("features agree with the kernel's list") {
  mask_features("amx");
  const std::string flags = [] {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
      if (line.rfind("flags", 0) == 0) return line + " ";
    return std::string();
  }();
  REQUIRE_FALSE(flags.empty());
  const auto listed = [&](const std::string& flag) { return flags.find(" " + flag + " ") != std::string::npos; };
  CHECK(has(Feature::avx2) == listed("avx2"));
  CHECK(has(Feature::fma) == listed("fma"));
  CHECK(has(Feature::f16c) == listed("f16c"));
  CHECK(has(Feature::avx512) == (listed("avx512f") && listed("avx512bw") && listed("avx512dq") && listed("avx512vl")));
  CHECK(has(Feature::avx512_vnni) == listed("avx512_vnni"));
  CHECK(has(Feature::avx512_bf16) == listed("avx512_bf16"));
  if (!listed("amx_tile")) CHECK_FALSE(has(Feature::amx_int8));
}

TEST_CASE("this machine has a name, threads and memory") {
  CHECK_FALSE(processor_name().empty());
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(is_intel() == (text.find("GenuineIntel") != std::string::npos));
  CHECK(usable_threads() >= 1);
  CHECK(usable_cores() >= 1);
  CHECK(usable_cores() <= usable_threads());
  CHECK(total_memory_bytes() > 1 << 20);
}

TEST_CASE("threads of one core count once, and those of which nothing is told by themselves") {
  const TemporaryFolder root;
  CHECK(count_cores(root.path(), {}) == 0);
  CHECK(count_cores(root.path(), {0, 3}) == 2);
  const std::string folder = "sys/devices/system/cpu/cpu", file = "/topology/thread_siblings_list";
  write_tree(root, {{folder + "0" + file, "0,2\n"},
                    {folder + "1" + file, "1,3\n"},
                    {folder + "2" + file, "0,2\n"},
                    {folder + "3" + file, "1,3\n"}});
  CHECK(count_cores(root.path(), {0, 1, 2, 3}) == 2);
  CHECK(count_cores(root.path(), {0, 2}) == 1);
  CHECK(count_cores(root.path(), {0, 3}) == 2);
  CHECK(count_cores(root.path(), {1, 2, 3, 4}) == 3);
}

TEST_CASE("quotas of control groups, version 2") {
  const TemporaryFolder root;
  CHECK_FALSE(read_processor_quota(root.path()).has_value());
  write_tree(root, {{"proc/self/cgroup", "0::/user/job\n"},
                    {"sys/fs/cgroup/user/job/cpu.max", "max 100000\n"},
                    {"sys/fs/cgroup/user/job/memory.max", "max\n"}});
  CHECK_FALSE(read_processor_quota(root.path()).has_value());
  CHECK_FALSE(read_memory_limit(root.path()).has_value());
  write_tree(root, {{"sys/fs/cgroup/user/cpu.max", "150000 100000\n"}, {"sys/fs/cgroup/user/memory.max", "1048576\n"}});
  CHECK(read_processor_quota(root.path()) == 1.5);
  CHECK(read_memory_limit(root.path()) == 1048576);
  write_tree(root, {{"sys/fs/cgroup/user/job/cpu.max", "50000 100000\n"}});
  CHECK(read_processor_quota(root.path()) == 0.5);
  write_tree(root, {{"sys/fs/cgroup/user/job/cpu.max", "nonsense\n"}});
  CHECK(read_processor_quota(root.path()) == 1.5);
}

TEST_CASE("quotas of control groups, version 1, also where the group itself is not mounted") {
  const TemporaryFolder root;
  write_tree(root, {{"proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n"},
                    {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
                    {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}});
  CHECK_FALSE(read_processor_quota(root.path()).has_value());
  write_tree(root, {{"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n"},
                    {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9000000\n"}});
  CHECK(read_processor_quota(root.path()) == 4);
  CHECK(read_memory_limit(root.path()) == 9000000);
}

TEST_CASE("environment variables come from the table, and the page shows the table") {
  EXPECT_ERROR(internal, read_environment("PATH"), "PATH");
  REQUIRE(setenv("LISSOME_ISA", "", 1) == 0);
  CHECK_FALSE(read_environment("LISSOME_ISA").has_value());
  REQUIRE(setenv("LISSOME_ISA", "avx2", 1) == 0);
  CHECK(read_environment("LISSOME_ISA") == "avx2");
  REQUIRE(unsetenv("LISSOME_ISA") == 0);
  CHECK_FALSE(read_environment("LISSOME_ISA").has_value());
  const std::string page = read_text_file(std::string(LISSOME_SOURCE_DIR) + "/docs/environment.md", 1 << 20);
  size_t rows = 0;
  for (const EnvironmentVariable& variable : environment_variables()) {
    const std::string row = "| `" + std::string(variable.name) + "` | `" + std::string(variable.flag) + "` | " +
                            std::string(variable.allowed) + " | " + std::string(variable.effect) + " |";
    CHECK_MESSAGE(page.find(row) != std::string::npos, row);
    ++rows;
  }
  size_t shown = 0;  // rows of the page start with a name in backquotes
  for (size_t at = page.find("\n| `"); at != std::string::npos; at = page.find("\n| `", at + 1)) ++shown;
  CHECK(shown == rows);
}

TEST_CASE("the cache folder is made where it is asked for, and none keeps nothing") {
  const TemporaryFolder folder;
  set_cache_folder(folder.file("a/b"));
  CHECK(cache_folder() == folder.file("a/b"));
  write_file(folder.file("a/b/kept"), "x");
  set_cache_folder(folder.file("a/b/kept/no"));  // a file is in the way
  CHECK(cache_folder().empty());
  set_cache_folder("none");
  CHECK(cache_folder().empty());
}
