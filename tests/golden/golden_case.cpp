// Reads golden files; the form is drawn in golden_case.h.
#include "golden_case.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lissome/base.h"

namespace lissome {
namespace {

std::string trim(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

class GoldenReader {
 public:
  explicit GoldenReader(const std::string& path) : file_(std::filesystem::path(path).filename().string()) {}

  void read_line(const std::string& line) {
    ++line_;
    if (line.starts_with("//")) return;
    if (line.starts_with("#")) return begin_case(trim(line.substr(1)));
    if (trim(line).empty()) return;
    if (cases_.empty()) refuse("a case begins with a title: # what it shows");
    for (const std::string keyword : {"pass", "given", "before", "after"}) {
      if (!line.starts_with(keyword + ":")) continue;
      section_ = keyword;
      return add(line.substr(keyword.size() + 1));
    }
    if (line[0] != ' ' || section_.empty())
      refuse("neither a keyword (pass, given, before, after) nor an indented line");
    add(line);
  }

  std::vector<GoldenCase> finish() {
    for (GoldenCase& one : cases_) {
      one.after = trim(one.after);
      if (trim(one.before).empty() || one.after.empty()) {
        throw_error(ErrorKind::invalid_input, one.place(), " lacks a before or an after");
      }
    }
    return std::move(cases_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw_error(ErrorKind::invalid_input, file_, ":", line_, ": ", why);
  }

  void begin_case(std::string title) {
    GoldenCase fresh;
    fresh.file = file_;
    fresh.title = std::move(title);
    fresh.pass = file_.substr(0, file_.find('.'));
    fresh.line = line_;
    cases_.push_back(std::move(fresh));
    section_.clear();
  }

  void add(const std::string& text) {
    GoldenCase& one = cases_.back();
    if (section_ == "pass") {
      one.pass = trim(text);
    } else if (section_ == "given") {
      const size_t equals = text.find('=');
      if (trim(text).empty()) return;
      if (equals == std::string::npos) refuse("given is like @half = 0.5");
      one.given.emplace_back(trim(text.substr(0, equals)), trim(text.substr(equals + 1)));
    } else {
      (section_ == "before" ? one.before : one.after) += text + "\n";
    }
  }

  std::string file_, section_;
  int line_ = 0;
  std::vector<GoldenCase> cases_;
};

}  // namespace

std::string GoldenCase::place() const { return file + ":" + std::to_string(line) + ": " + title; }

std::vector<GoldenCase> read_golden_file(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) throw_error(ErrorKind::io, "cannot read ", path);
  GoldenReader reader(path);
  for (std::string line; std::getline(stream, line);) reader.read_line(line);
  return reader.finish();
}

std::vector<GoldenCase> read_documented_cases(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) throw_error(ErrorKind::io, "cannot read ", path);
  GoldenReader reader(path);
  for (std::string line; std::getline(stream, line);) {
    // What belongs to no case is read as an empty line, so that errors name the right one.
    const bool title = line.starts_with("### "), part = line.starts_with("    ");
    reader.read_line(title ? line.substr(2) : part ? line.substr(4) : std::string());
  }
  std::vector<GoldenCase> cases = reader.finish();
  for (GoldenCase& one : cases) one.pass = one.title;
  return cases;
}

}  // namespace lissome
