#include "lissome/base/file.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "lissome/base/error.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

// Runs `body` in a child process, where limits and users may be changed; true when it returned true there.
template <typename Body>
bool run_in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    bool passed = false;
    try {
      passed = body();
    } catch (const std::exception& error) {
      static_cast<void>(!fprintf(stderr, "in the child: %s\n", error.what()));
    }
    _exit(passed ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

template <typename Body>
bool throws_io(Body body, const std::string& word) {
  try {
    body();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::io && error.message().find(word) != std::string::npos;
  }
  return false;
}

}  // namespace

TEST_CASE("a file is mapped whole, an empty one too") {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(folder.write("a", "hello"));
  CHECK(file->bytes().size() == 5);
  CHECK(std::to_integer<char>(file->bytes()[4]) == 'o');
  CHECK(file->path() == folder.file("a"));
  file->check_unchanged();
  CHECK(MappedFile::open(folder.write("empty", ""))->bytes().empty());
}

TEST_CASE("what is no regular file is refused") {
  const TemporaryFolder folder;
  EXPECT_ERROR(usage, MappedFile::open(folder.file("absent")), "absent", "no such file");
  EXPECT_ERROR(usage, MappedFile::open(folder.file("absent/x")), "no such file");
  EXPECT_ERROR(usage, MappedFile::open(folder.path()), "directory");
  EXPECT_ERROR(usage, MappedFile::open(""), "no such file");
  EXPECT_ERROR(invalid_input, MappedFile::open("/dev/zero"), "device");
  REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  EXPECT_ERROR(invalid_input, MappedFile::open(folder.file("pipe")), "pipe");
}

TEST_CASE("writing into a mapping does not reach the file") {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(folder.write("a", "hello"));
  const_cast<std::byte&>(file->bytes()[0]) = std::byte{'j'};
  CHECK(folder.read("a") == "hello");
}

TEST_CASE("text is read up to a limit") {
  const TemporaryFolder folder;
  folder.write("a", "hello");
  CHECK(read_text_file(folder.file("a"), 5) == "hello");
  EXPECT_ERROR(invalid_input, read_text_file(folder.file("a"), 4), "5 bytes", "at most 4");
}

TEST_CASE("a file appears only when it is complete") {
  const TemporaryFolder folder;
  folder.write("a", "old");
  {
    AtomicFile file(folder.file("a"));
    file.write("new text");
    CHECK(file.position() == 8);
    CHECK(folder.read("a") == "old");
    CHECK(folder.list().size() == 2);
  }
  CHECK(folder.read("a") == "old");
  CHECK(folder.list().size() == 1);
  AtomicFile file(folder.file("a"));
  file.write("____ text");
  file.write_at(0, std::as_bytes(std::span("well", 4)));
  CHECK(file.position() == 9);
  file.commit();
  CHECK(folder.read("a") == "well text");
  CHECK(folder.list().size() == 1);
}

TEST_CASE("permissions and links of an older file are kept") {
  const TemporaryFolder folder;
  folder.write("real", "old");
  REQUIRE(chmod(folder.file("real").c_str(), 0640) == 0);
  std::filesystem::create_symlink("real", folder.file("link"));
  write_file(folder.file("link"), "new");
  CHECK(folder.read("real") == "new");
  CHECK(std::filesystem::is_symlink(folder.file("link")));
  struct stat status{};
  REQUIRE(stat(folder.file("real").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0640);
}

TEST_CASE("long names are no obstacle") {
  const TemporaryFolder folder;
  write_file(folder.file(std::string(255, 'n')), "text");
  CHECK(folder.read(std::string(255, 'n')) == "text");
}

TEST_CASE("targets that cannot be files are refused") {
  const TemporaryFolder folder;
  EXPECT_ERROR(usage, write_file(folder.file("absent/a"), ""), "absent", "does not exist");
  EXPECT_ERROR(usage, write_file(folder.path(), ""), "directory");
  EXPECT_ERROR(usage, write_file(folder.file("new/"), ""), "file name");
  EXPECT_ERROR(usage, write_file("", ""), "empty");
  EXPECT_ERROR(usage, write_file("/dev/null", ""), "device");
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK(folder.list().empty());
}

TEST_CASE("a write that fails leaves the old file and no other") {
  const TemporaryFolder folder;
  folder.write("a", "old");
  CHECK(run_in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    return throws_io([&] { write_file(folder.file("a"), std::string(200'000, 'x')); }, "after 100000 bytes");
  }));
  CHECK(folder.read("a") == "old");
  CHECK(folder.list().size() == 1);
}

TEST_CASE("no permission is an error of its own") {
  const TemporaryFolder folder;
  folder.write("a", "old");
  REQUIRE(chmod(folder.file("a").c_str(), 0444) == 0);
  REQUIRE(chmod(folder.path().c_str(), 0555) == 0);
  CHECK(run_in_child([&] {
    // Root may write anywhere.
    if (geteuid() == 0 && setuid(65534) != 0) return false;
    return throws_io([&] { write_file(folder.file("b"), "text"); }, "Permission denied") &&
           throws_io([&] { write_file(folder.file("a"), "text"); }, "Permission denied");
  }));
  REQUIRE(chmod(folder.file("a").c_str(), 0000) == 0);
  CHECK(run_in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return false;
    return throws_io([&] { MappedFile::open(folder.file("a")); }, "Permission denied");
  }));
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
  CHECK(folder.list().size() == 1);
}

TEST_CASE("many writers do not meet in one temporary name") {
  const TemporaryFolder folder;
  AtomicFile first(folder.file("a")), second(folder.file("a"));
  first.write("first");
  second.write("second");
  second.commit();
  first.commit();
  CHECK(folder.read("a") == "first");
  CHECK(folder.list().size() == 1);
}
