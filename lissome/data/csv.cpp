// See csv.h. One pass over the mapped file; numbers go straight into their columns.
#include "lissome/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_set>

namespace lissome {
namespace {

struct Field {
  std::string_view text;  // of the file, or of `unquoted`
  bool is_last = false;   // of its line
};

// Cuts a file into fields and counts its lines.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& path) : text_(text), path_(path) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  bool at_end() const { return at_ >= text_.size(); }
  int64_t line() const { return line_; }  // of the field that was read last, from 1

  // Lines with nothing on them are passed over; call it where a line begins.
  void skip_empty_lines() {
    while (!at_end() && (text_[at_] == '\n' || text_[at_] == '\r')) next_line_ += text_[at_++] == '\n' ? 1 : 0;
  }

  Field read() {
    line_ = next_line_;
    Field field;
    field.text = !at_end() && text_[at_] == '"' ? read_quoted() : read_plain();
    if (!at_end() && text_[at_] == '\r') {
      ++at_;
      if (!at_end() && text_[at_] != '\n')
        throw_error(ErrorKind::invalid_input, quote(path_), ", line ", line_,
                    ": a carriage return stands alone; lines end with a line feed, or with both.");
    }
    field.is_last = at_end() || text_[at_] == '\n';
    if (!field.is_last && text_[at_] != ',')
      throw_error(ErrorKind::invalid_input, quote(path_), ", line ", line_,
                  ": something stands behind a closing quote; a comma or the end of the line is allowed.");
    if (!at_end()) next_line_ += text_[at_++] == '\n' ? 1 : 0;
    return field;
  }

 private:
  std::string_view read_plain() {
    const size_t first = at_;
    while (!at_end() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
    return text_.substr(first, at_ - first);
  }

  std::string_view read_quoted() {
    unquoted_.clear();
    for (++at_; !at_end(); ++at_) {
      if (text_[at_] == '\n') ++next_line_;
      if (text_[at_] != '"') {
        unquoted_ += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        unquoted_ += text_[at_++];
      } else {
        ++at_;
        return unquoted_;
      }
    }
    throw_error(ErrorKind::invalid_input, quote(path_), ", line ", line_, ": a quote opens and does not close.");
  }

  std::string_view text_;
  const std::string& path_;
  std::string unquoted_;
  size_t at_ = 0;
  int64_t line_ = 1, next_line_ = 1;
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <typename T>
std::optional<T> parse_as(std::string_view text) {
  text = trim(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::vector<std::string> read_header(CsvReader& reader, const std::string& path) {
  reader.skip_empty_lines();
  if (reader.at_end())
    throw_error(ErrorKind::invalid_input, quote(path),
                ": the file is empty; a header with the names of the columns is needed.");
  std::vector<std::string> names;
  std::unordered_set<std::string> known;
  bool is_last = false;
  while (!is_last) {
    const Field field = reader.read();
    is_last = field.is_last;
    names.emplace_back(trim(field.text));
    if (names.back().empty())
      throw_error(ErrorKind::invalid_input, quote(path), ", line ", reader.line(), ": column ", names.size(),
                  " has no name.");
    if (!known.insert(names.back()).second)
      throw_error(ErrorKind::invalid_input, quote(path), ", line ", reader.line(), ": two columns are named ",
                  quote(names.back()), ".");
  }
  if (std::all_of(names.begin(), names.end(), [](const auto& name) { return parse_as<double>(name).has_value(); }))
    throw_error(ErrorKind::invalid_input, quote(path), ", line ", reader.line(),
                ": the line holds only numbers; the first line must be a header with the names of the columns.");
  return names;
}

float parse_feature(std::string_view text, const std::string& path, int64_t line, const std::string& column) {
  const auto value = parse_as<double>(text);
  const auto narrow = static_cast<float>(value.value_or(NAN));
  if (!std::isfinite(narrow))
    throw_error(ErrorKind::invalid_input, quote(path), ", line ", line, ", column ", quote(column), ": the field ",
                text.empty() ? std::string("is empty") : "holds " + quote(text), "; a finite number of f32 is needed",
                text.empty() || parse_as<double>(text) ? "." : ".\nA column of classes is named with --labels.");
  return narrow;
}

// Numbers stay numbers; as soon as there is one word, all are words.
void number_labels(const std::vector<std::string>& words, CsvTable& table) {
  const auto count = static_cast<int64_t>(words.size());
  const auto fill = [&]<typename T>(Dtype dtype, const auto& parse) {
    Array labels = make_array(dtype, {count});
    for (size_t i = 0; i < words.size(); ++i) {
      const auto value = parse(words[i]);
      if (!value) return false;
      labels.data<T>()[i] = static_cast<T>(*value);
    }
    table.labels = std::move(labels);
    return true;
  };
  if (fill.template operator()<int64_t>(Dtype::i64, parse_as<int64_t>)) return;
  if (fill.template operator()<float>(Dtype::f32, parse_as<double>)) return;
  table.classes = words;
  std::sort(table.classes.begin(), table.classes.end());
  table.classes.erase(std::unique(table.classes.begin(), table.classes.end()), table.classes.end());
  fill.template operator()<int64_t>(Dtype::i64, [&](const std::string& word) {
    const auto at = std::lower_bound(table.classes.begin(), table.classes.end(), word);
    return std::optional(at - table.classes.begin());
  });
}

size_t find_label(const std::vector<std::string>& names, const std::string& label_column, const std::string& path) {
  if (label_column.empty()) return names.size();
  const auto found = std::find(names.begin(), names.end(), label_column);
  if (found == names.end()) {
    const std::string nearest = find_nearest(label_column, names);
    throw_error(ErrorKind::usage, quote(path), ": there is no column ", quote(label_column),
                " for the labels; the columns are: ", join_few(names, 12),
                nearest.empty() ? "." : ". Did you mean " + nearest + "?");
  }
  return static_cast<size_t>(found - names.begin());
}

// The fields of one line.
void read_line(CsvReader& reader, const std::string& path, const std::vector<std::string>& names, size_t label,
               std::vector<float>& features, std::vector<std::string>& labels) {
  bool is_last = false;
  size_t column = 0;
  int64_t line = 0;
  for (; !is_last; ++column) {
    const Field field = reader.read();
    if (column == 0) line = reader.line();
    is_last = field.is_last;
    if (column >= names.size()) continue;
    if (column == label) {
      labels.emplace_back(trim(field.text));
      if (labels.back().empty())
        throw_error(ErrorKind::invalid_input, quote(path), ", line ", line, ", column ", quote(names[column]),
                    ": the field is empty; a label is needed.");
    } else {
      features.push_back(parse_feature(field.text, path, line, names[column]));
    }
  }
  if (column != names.size())
    throw_error(ErrorKind::invalid_input, quote(path), ", line ", line, ": the line has ", column,
                column == 1 ? " field; the header has " : " fields; the header has ", names.size(), ".");
}

}  // namespace

CsvTable load_csv(const std::string& path, const std::string& label_column) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_utf8(text))
    throw_error(ErrorKind::invalid_input, quote(path), ": the file is not text in UTF-8. Save it in UTF-8.");
  CsvReader reader(text, path);
  std::vector<std::string> names = read_header(reader, path);
  const size_t label = find_label(names, label_column, path);
  std::vector<float> features;
  std::vector<std::string> labels;
  int64_t samples = 0;
  for (reader.skip_empty_lines(); !reader.at_end(); reader.skip_empty_lines(), ++samples)
    read_line(reader, path, names, label, features, labels);
  file->check_unchanged();
  CsvTable table;
  if (label < names.size()) {
    number_labels(labels, table);
    names.erase(names.begin() + static_cast<int64_t>(label));
  }
  table.features = make_array(Dtype::f32, {samples, static_cast<int64_t>(names.size())});
  if (!features.empty()) std::memcpy(table.features.storage.get(), features.data(), features.size() * sizeof(float));
  table.columns = std::move(names);
  return table;
}

}  // namespace lissome
