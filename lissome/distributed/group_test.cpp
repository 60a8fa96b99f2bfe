// Ranks find each other, agree or are refused, and sum to the same bits. Ranks are threads here, with a store in memory
// of this process; processes are in tests/train.
#include "lissome/distributed/group.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "lissome/measure.h"
#include "tests/expect_error.h"
#include "tests/run_ranks.h"

using namespace lissome;

namespace {

class Variable {
 public:
  Variable(const char* name, const char* text) : name_(name) { setenv(name, text, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("sums and what rank 0 shares are the same on every rank") {
  for (const int ranks : {1, 2, 3}) {
    std::vector<at::Tensor> sums(static_cast<size_t>(ranks)), shared(static_cast<size_t>(ranks));
    std::vector<std::string> texts(static_cast<size_t>(ranks));
    const std::vector<std::string> errors = run_ranks(ranks, 20, [&](Group& group) {
      const auto rank = static_cast<size_t>(group.rank());
      group.check_agreement({{"batch", "32"}, {"seed", "0"}});
      sums[rank] = at::arange(1000, at::kFloat).mul(0.1F * static_cast<float>(rank + 1));
      group.sum(sums[rank], "the sum of a test");
      shared[rank] = at::full({3}, static_cast<double>(rank) + 7, at::kDouble);
      group.share(shared[rank], "sharing");
      texts[rank] = group.share_text("rank " + std::to_string(rank), "a text");
    });
    for (const std::string& error : errors) CHECK(error == "");
    for (size_t rank = 0; rank < sums.size(); ++rank) {
      CHECK(sums[rank].equal(sums[0]));
      CHECK(shared[rank].equal(at::full({3}, 7.0, at::kDouble)));
      CHECK(texts[rank] == "rank 0");
    }
    const double factor = 0.1 * ranks * (ranks + 1) / 2;
    CHECK(sums[0][999].item().toDouble() == doctest::Approx(999 * factor).epsilon(1e-6));
  }
}

TEST_CASE("ranks that train other things are refused, each by the name of the difference") {
  const std::vector<std::string> errors = run_ranks(
      2, 20, [](Group& group) { group.check_agreement({{"batch", group.rank() == 0 ? "32" : "64"}, {"seed", "0"}}); });
  for (const std::string& error : errors)
    CHECK(error == "invalid_input: rank 1 trains something else than rank 0: batch is '64', on rank 0 '32'");
}

TEST_CASE("a rank that does not come, another count of ranks and a port that is taken are named within the timeout") {
  const Stopwatch watch;
  EXPECT_ERROR(io, Group({.rank = 0, .ranks = 2, .port = find_free_port()}, 0.5),
               "rank 1 of 2 did not come to 127.0.0.1:", "within 500 ms");
  // Another port: a thread that gave up may hold the store at the first for a moment yet.
  EXPECT_ERROR(io, Group({.rank = 1, .ranks = 2, .port = find_free_port()}, 0.5),
               "rank 1 does not reach the store of the group at 127.0.0.1:");
  const std::vector<std::string> errors =
      run_ranks(2, 2, [](Group&) {}, [](GroupPlace& place) { place.ranks += place.rank; });
  CHECK(errors[1] == "usage: rank 1 counts 3 ranks (WORLD_SIZE), rank 0 counts 2");
  CHECK(errors[0].find("rank 1 of 2 did not come") != std::string::npos);
  const TakenPort taken;
  EXPECT_ERROR(io, Group({.rank = 0, .ranks = 2, .port = taken.number()}, 1), "rank 0 cannot host the store");
  CHECK(watch.seconds() < 15);
}

TEST_CASE("a peer that ends or does not come is named with the operation") {
  std::vector<std::string> errors = run_ranks(2, 20, [](Group& group) {
    group.sum(at::full({4}, 1.0), "a sum after which both ranks are connected");
    if (group.rank() == 1) return;  // its connection closes
    group.sum(at::full({4}, 1.0), "the gradients of step 7");
  });
  CHECK_MESSAGE(errors[0].starts_with("io: rank 0 of 2 lost a peer in the gradients of step 7: "), errors[0]);
  const Stopwatch watch;
  errors = run_ranks(2, 1, [](Group& group) {
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(3));
    if (group.rank() == 0) group.sum(at::full({4}, 1.0), "the gradients of step 8");
  });
  CHECK(errors[0].find("lost a peer in the gradients of step 8: ") != std::string::npos);
  CHECK(watch.seconds() < 10);
}

TEST_CASE("the place is read from the environment") {
  CHECK_FALSE(find_group_place());
  const Variable ranks("WORLD_SIZE", "4"), address("MASTER_ADDR", "host7"), port("MASTER_PORT", "1234");
  EXPECT_ERROR(usage, find_group_place(), "RANK is not set");
  {
    const Variable rank("RANK", "4");
    EXPECT_ERROR(usage, find_group_place(), "RANK is '4'", "from 0 to 3");
  }
  const Variable rank("RANK", "3"), agent("TORCHELASTIC_USE_AGENT_STORE", "True");
  const GroupPlace place = find_group_place().value();
  CHECK(place.rank == 3);
  CHECK(place.ranks == 4);
  CHECK(place.address == "host7");
  CHECK(place.port == 1234);
  CHECK(place.has_store);
  const Variable bad("MASTER_PORT", "70000");
  EXPECT_ERROR(usage, find_group_place(), "MASTER_PORT is '70000'");
}
