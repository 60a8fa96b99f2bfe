#include <doctest/doctest.h>

#include "lissome/data.h"
#include "lissome/data/csv.h"
#include "lissome/data/data_test_files.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

CsvTable load(const std::string& text, const std::string& labels = "") {
  const TemporaryFolder folder;
  return load_csv(folder.write("t.csv", text), labels);
}

}  // namespace

TEST_CASE("a table of numbers: header, rows, a label column by name") {
  const CsvTable table = load("a,species, b\n1,2,-3.5\n+4,0,6e2\n", "species");
  CHECK(table.columns == std::vector<std::string>{"a", "b"});
  CHECK(table.features.sizes == Sizes{2, 2});
  CHECK(values_of<float>(table.features) == std::vector<float>{1, -3.5, 4, 600});
  CHECK(table.labels->dtype == Dtype::i64);
  CHECK(values_of<int64_t>(*table.labels) == std::vector<int64_t>{2, 0});
}

TEST_CASE("labels are whole numbers, numbers or words") {
  CHECK(load("x,y\n1,2\n1,2.5\n", "y").labels->dtype == Dtype::f32);
  const CsvTable words = load("x,y\n1,dog\n1,cat\n1,dog\n1,7\n", "y");
  CHECK(words.classes == std::vector<std::string>{"7", "cat", "dog"});
  CHECK(values_of<int64_t>(*words.labels) == std::vector<int64_t>{2, 1, 2, 0});
  CHECK_FALSE(load("x\n1\n").labels.has_value());
}

TEST_CASE("quotes, spaces, empty lines, line ends of Windows, a byte order mark, no end of line at the end") {
  const CsvTable table = load("\xEF\xBB\xBF\"first, \"\"best\"\"\",y\r\n\r\n\" 5 \",\"a\nb\"\r\n 6\t,c", "y");
  CHECK(table.columns == std::vector<std::string>{"first, \"best\""});
  CHECK(values_of<float>(table.features) == std::vector<float>{5, 6});
  CHECK(table.classes == std::vector<std::string>{"a\nb", "c"});
}

TEST_CASE("tables that are wrong are refused with the line") {
  const auto refuses = [](const std::string& text, const std::string& place, const std::string& word = "") {
    EXPECT_ERROR(invalid_input, load(text), "t.csv", place, word);
  };
  refuses("", "empty");
  refuses("\n\n", "empty");
  refuses("a,b\n1,2\n3\n", "line 3", "1 field; the header has 2");
  refuses("a,b\n1,2,3\n", "line 2", "3 fields");
  refuses("a,b\n1,\n", "line 2, column 'b'", "is empty");
  refuses("a,b\n\n\n1,x\n", "line 4, column 'b'", "'x'");
  refuses("a\n1\nnan\n", "line 3", "'nan'");
  refuses("a\n1e300\n", "line 2", "finite number of f32 is needed.");
  refuses("a\ncat\n", "line 2", "named with --labels");
  refuses("a\n\"1\n", "line 2", "quote opens");
  refuses("a\n\"1\"2\n", "line 2", "behind a closing quote");
  refuses("a,b\r1,2\r", "line 1", "a carriage return stands alone");
  refuses("a,a\n1,2\n", "line 1", "two columns");
  refuses("a,\n1,2\n", "line 1", "column 2 has no name");
  refuses("1,2\n3,4\n", "line 1", "header");
  EXPECT_ERROR(invalid_input, load("\xac,y\n1,2\n", "z"), "t.csv", "UTF-8");
  // Lines inside of quotes count.
  EXPECT_ERROR(invalid_input, load("x,y\n1,\"a\n\n\"\nz,b\n", "y"), "line 5", "'z'");
  EXPECT_ERROR(invalid_input, load("x,y\n1,\n", "y"), "line 2", "a label is needed");
  EXPECT_ERROR(usage, load("a,b\n1,2\n", "c"), "'c'", "a, b");
}

TEST_CASE("a table is a dataset") {
  const TemporaryFolder folder;
  const Dataset dataset = load_dataset(folder.write("t.csv", "a,b,y\n1,2,no\n3,4,yes\n"), {.labels = "y"});
  CHECK(dataset.samples() == 2);
  CHECK(dataset.columns[0].name == "features");
  CHECK(dataset.classes == std::vector<std::string>{"no", "yes"});
  CHECK(values_of<int64_t>(take_labels(dataset, 0, 2)) == std::vector<int64_t>{0, 1});
  EXPECT_ERROR(invalid_input, load_dataset(folder.write("o.csv", "y\n1\n"), {.labels = "y"}), "besides the labels");
  EXPECT_ERROR(invalid_input, load_dataset(folder.write("e.csv", "a,y\n"), {.labels = "y"}), "no samples");
}
