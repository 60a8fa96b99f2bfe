// What a sweep removes and what it must leave, and what a process removes that ends by a signal.
#include "lissome/base/temporary_file.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "lissome/base/file.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

// A child process that runs `body` and ends as it says; returns its exit code, -1 where a signal ended it.
template <typename Body>
int run_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> list_sorted(const TemporaryFolder& folder) {
  std::vector<std::string> names = folder.list();
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("what a killed process left half-written is removed by the next that writes into the folder") {
  const TemporaryFolder folder;
  CHECK(run_child([&] {
          AtomicFile file(folder.file("model"));
          file.write("half");
          kill(getpid(), SIGKILL);
        }) == -1);
  REQUIRE(folder.list().size() == 1);
  write_file(folder.file("other"), "whole");
  CHECK(list_sorted(folder) == std::vector<std::string>{"other"});
}

TEST_CASE("the time of a stale file does not count: clocks of files may be ahead of the program's") {
  const TemporaryFolder folder;
  const std::filesystem::path stale = folder.write(".lissome-1-2.tmp", "stale");
  std::filesystem::last_write_time(stale, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(10));
  sweep_temporary_files(folder.path());
  CHECK(folder.list().empty());
}

TEST_CASE("a file that a live process writes is left alone, whatever the process ids say") {
  const TemporaryFolder folder;
  AtomicFile writing(folder.file("model"));
  writing.write("half");
  // Another process with the same process id, as in another container, knows nothing but the lock.
  CHECK(run_child([&] {
          sweep_temporary_files(folder.path());
          _exit(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1 ? 7 : 1);
        }) == 7);
  sweep_temporary_files(folder.path());  // nor does this process remove its own
  writing.write(" and half");
  writing.commit();
  CHECK(folder.read("model") == "half and half");
}

TEST_CASE("a sealed file keeps its lock until it has its name") {
  const TemporaryFolder folder;
  AtomicFile sealed(folder.file("model"));
  sealed.write("best so far");
  sealed.seal();
  sweep_temporary_files(folder.path());
  CHECK(folder.list().size() == 1);
  sealed.publish();
  CHECK(folder.read("model") == "best so far");
  CHECK(list_sorted(folder) == std::vector<std::string>{"model"});
}

TEST_CASE("a sweep removes names of ours alone") {
  const TemporaryFolder folder;
  const std::vector<std::string> others = {".lissome-12.tmp",         ".lissome-a-1.tmp",       ".lissome-1-.tmp",
                                           ".lissome-1-2.tmp~",       "x.lissome-1-2.tmp",      ".lissome--1-2.tmp",
                                           ".lissome-1-2-3.tmp",      ".lissome-offload-abcde", ".lissome-tmp",
                                           ".lissome-offload-abcdefg"};
  for (const std::string& name : others) folder.write(name, "not ours");
  folder.write(".lissome-1-2.tmp", "stale");
  folder.write(".lissome-4194304-18446744073709551615.tmp", "stale");
  folder.write(".lissome-offload-aB3dEf", "stale");
  std::filesystem::create_directory(folder.file(".lissome-3-4.tmp"));
  folder.write("target", "kept");
  std::filesystem::create_symlink("target", folder.file(".lissome-5-6.tmp"));
  std::filesystem::create_hard_link(folder.file("target"), folder.file(".lissome-7-8.tmp"));
  REQUIRE(mkfifo(folder.file(".lissome-9-10.tmp").c_str(), 0600) == 0);
  sweep_temporary_files(folder.path());
  for (const std::string& name : others) CHECK(std::filesystem::exists(folder.file(name)));
  for (const char* name : {".lissome-3-4.tmp", ".lissome-5-6.tmp", ".lissome-7-8.tmp", ".lissome-9-10.tmp"})
    CHECK(std::filesystem::exists(std::filesystem::symlink_status(folder.file(name))));
  CHECK(folder.read("target") == "kept");
  CHECK(folder.list().size() == others.size() + 5);
}

TEST_CASE("sweeps and writers that meet lose nothing") {
  const TemporaryFolder folder;
  std::atomic<bool> done{false};
  std::thread sweeper([&] {
    while (!done) sweep_temporary_files(folder.path());
  });
  for (int i = 0; i < 300; ++i) write_file(folder.file("model"), std::to_string(i));
  done = true;
  sweeper.join();
  CHECK(folder.read("model") == "299");
  sweep_temporary_files(folder.path());
  CHECK(list_sorted(folder) == std::vector<std::string>{"model"});
}

TEST_CASE("a process that ends at a signal takes its unfinished files and empty folders along") {
  const TemporaryFolder folder;
  folder.write("old", "whole");
  CHECK(run_child([&] {
          AtomicFile first(folder.file("old")), second(folder.file("new")), sealed(folder.file("sealed"));
          first.write("half");
          sealed.write("best so far");
          sealed.seal();
          AtomicFile committed(folder.file("committed"));
          committed.commit();
          std::filesystem::create_directory(folder.file("empty"));
          std::filesystem::create_directory(folder.file("full"));
          folder.write("full/snapshot", "whole");
          std::filesystem::create_directory(folder.file("begun"));
          const UnfinishedPath empty(folder.file("empty")), full(folder.file("full")), begun(folder.file("begun"));
          AtomicFile inside(folder.file("begun/snapshot"));
          inside.write("half");
          UnfinishedPath forgotten(folder.file("committed"));
          forgotten.forget();
          remove_unfinished_files();
          _exit(7);
        }) == 7);
  CHECK(list_sorted(folder) == std::vector<std::string>{"committed", "full", "old"});
  CHECK(folder.read("old") == "whole");
  CHECK(folder.read("full/snapshot") == "whole");
}

TEST_CASE("more unfinished files than the list holds are left to the next sweep") {
  const TemporaryFolder folder;
  CHECK(run_child([&] {
          std::vector<std::unique_ptr<AtomicFile>> files;
          for (int i = 0; i < 80; ++i) files.push_back(std::make_unique<AtomicFile>(folder.file(std::to_string(i))));
          remove_unfinished_files();
          _exit(7);
        }) == 7);
  CHECK(folder.list().size() == 80 - 64);
  sweep_temporary_files(folder.path());
  CHECK(folder.list().empty());
}
