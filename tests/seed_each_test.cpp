// Random numbers of a test case hang neither on those before it nor on how often something was timed. Another seed:
// LISSOME_TEST_SEED=7.
#include <ATen/Context.h>
#include <doctest/doctest.h>

#include <cstdlib>

namespace {

class Seeder : public doctest::IReporter {
 public:
  explicit Seeder(const doctest::ContextOptions&) {
    if (const char* text = std::getenv("LISSOME_TEST_SEED")) seed_ = std::strtoull(text, nullptr, 10);
  }
  void test_case_start(const doctest::TestCaseData&) override { at::manual_seed(seed_); }
  void test_case_reenter(const doctest::TestCaseData&) override { at::manual_seed(seed_); }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  uint64_t seed_ = 1;
};

}  // namespace

REGISTER_LISTENER("seed", 1, Seeder);
