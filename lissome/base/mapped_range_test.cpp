// Mappings of files that shrink under them, with a handler as a program would install it, in child processes.
#include "lissome/base/mapped_range.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "lissome/base/error.h"
#include "lissome/base/file.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

void cover_or_die(int, siginfo_t* facts, void*) {
  if (!cover_mapped_range(facts->si_addr)) _exit(9);
}

// The exit code of a child that runs `body` with the handler installed; 1 where it throws or returns false.
template <typename Body>
int run_with_handler(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction action{};
    action.sa_sigaction = cover_or_die;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, nullptr);
    try {
      _exit(body() ? 0 : 1);
    } catch (const std::exception& error) {
      static_cast<void>(!fprintf(stderr, "in the child: %s\n", error.what()));
      _exit(1);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool says_truncated(const std::string& path) {
  try {
    check_mappings();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::io && error.message().find(path) != std::string::npos &&
           error.message().find("truncated while it was used") != std::string::npos;
  }
  return false;
}

const std::string kMegabyte(1 << 20, 'x');

}  // namespace

TEST_CASE("a mapping whose file is truncated reads as zeros, and what was computed does not count") {
  const TemporaryFolder folder;
  const std::string path = folder.write("model", kMegabyte), other = folder.write("other", kMegabyte);
  CHECK(run_with_handler([&] {
          const auto file = MappedFile::open(path), whole = MappedFile::open(other);
          const std::byte first = file->bytes()[0];
          AtomicFile result(folder.file("result"));
          check_mappings();
          std::filesystem::resize_file(path, 5000);
          const bool zeros = file->bytes()[900'000] == std::byte{0} && file->bytes()[0] == std::byte{0};
          bool refused = false;
          try {
            result.commit();
          } catch (const Error& error) {
            refused = error.kind() == ErrorKind::io;
          }
          return first == std::byte{'x'} && zeros && refused && says_truncated(path) &&
                 whole->bytes()[900'000] == std::byte{'x'};
        }) == 0);
  CHECK(folder.list().size() == 2);  // the model and the other file, no result and nothing temporary
}

TEST_CASE("many threads may meet the end of a file at once") {
  const TemporaryFolder folder;
  const std::string path = folder.write("model", kMegabyte);
  CHECK(run_with_handler([&] {
          const auto file = MappedFile::open(path);
          std::filesystem::resize_file(path, 0);
          std::vector<std::thread> readers;
          std::atomic<int> zeros{0};
          for (size_t i = 0; i < 8; ++i)
            readers.emplace_back([&, i] { zeros += file->bytes()[i * 100'000] == std::byte{0} ? 1 : 0; });
          for (std::thread& reader : readers) reader.join();
          return zeros == 8 && says_truncated(path);
        }) == 0);
}

TEST_CASE("what broke stays known when the file is closed") {
  const TemporaryFolder folder;
  const std::string path = folder.write("model", kMegabyte);
  CHECK(run_with_handler([&] {
          {
            const auto file = MappedFile::open(path);
            std::filesystem::resize_file(path, 0);
            static_cast<void>(*static_cast<const volatile std::byte*>(file->bytes().data()));
          }
          const auto other = MappedFile::open(folder.write("other", kMegabyte));
          return says_truncated(path);
        }) == 0);
}

TEST_CASE("a fault elsewhere is not covered, and neither is a mapping that has ended") {
  const TemporaryFolder folder;
  const std::string path = folder.write("model", kMegabyte);
  const auto read_behind_end = [&](bool listed) {
    const int file = open(path.c_str(), O_RDONLY);
    void* const data = mmap(nullptr, kMegabyte.size(), PROT_READ, MAP_PRIVATE, file, 0);
    if (listed) MappedRange(data, kMegabyte.size(), path);  // ends at once
    std::filesystem::resize_file(path, 0);
    return *(static_cast<const volatile char*>(data) + 500'000) == 0;
  };
  CHECK(run_with_handler([&] { return read_behind_end(false); }) == 9);
  folder.write("model", kMegabyte);
  CHECK(run_with_handler([&] { return read_behind_end(true); }) == 9);
}

TEST_CASE("more mappings than one block lists are all covered") {
  const TemporaryFolder folder;
  const std::string path = folder.write("model", kMegabyte);
  CHECK(run_with_handler([&] {
          std::vector<std::shared_ptr<const MappedFile>> files;
          for (int i = 0; i < 200; ++i) files.push_back(MappedFile::open(path));
          std::filesystem::resize_file(path, 0);
          for (const auto& file : files) {
            if (file->bytes()[0] != std::byte{0}) return false;
          }
          return says_truncated(path);
        }) == 0);
}
