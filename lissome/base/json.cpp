// Bounded JSON: nlohmann's event parser (not recursive) builds the document here, so that depth, number of values and
// duplicate keys are checked before memory is spent, and every refusal has a line and a column.
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "lissome/base/error.h"
#include "lissome/base/text.h"

namespace lissome {
namespace {

constexpr size_t kScannedKeys = 16;  // below this many keys an object is searched, above it a set is kept

// Walks the text and remembers how far the lexer has read: the event interface tells positions only for syntax errors.
class TrackedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackedIterator(const char* place, const char** reached) : place_(place), reached_(reached) {}
  reference operator*() const { return *place_; }
  TrackedIterator& operator++() {
    *reached_ = ++place_;
    return *this;
  }
  bool operator==(const TrackedIterator& other) const { return place_ == other.place_; }
  bool operator!=(const TrackedIterator& other) const { return place_ != other.place_; }

 private:
  const char* place_;
  const char** reached_;
};

using Members = std::vector<std::pair<const std::string, Json>>;  // what an object keeps its members in

// Appends without the map's own search of all keys. A vector of pairs with const keys copies whole values when it
// grows, at every level of a document again; here they are moved.
void move_to_capacity(Members& members, size_t capacity) {
  Members moved;
  moved.reserve(capacity);
  for (auto& [key, value] : members) moved.emplace_back(key, std::move(value));
  members.swap(moved);
}

Json* append_member(Members& members, std::string name) {
  if (members.size() == members.capacity()) move_to_capacity(members, std::max<size_t>(4, 2 * members.size()));
  return &members.emplace_back(std::move(name), nullptr).second;
}

// A document is read once and never grows again: half of what it takes would be room for more.
void fit(Json& container) {
  if (container.is_array()) {
    container.get_ref<Json::array_t&>().shrink_to_fit();
  } else if (auto& members = container.get_ref<Json::object_t&>(); members.size() < members.capacity()) {
    move_to_capacity(members, members.size());
  }
}

class DocumentBuilder : public nlohmann::json_sax<Json> {
 public:
  DocumentBuilder(int max_depth, size_t max_values) : max_depth_(max_depth), max_values_(max_values) {}

  Json& root() { return root_; }
  const std::string& refusal() const { return refusal_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return refuse("binary values are not JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    auto& members = level.value->get_ref<Json::object_t&>();
    if (members.size() < kScannedKeys) {
      const bool known =
          std::any_of(members.begin(), members.end(), [&](const auto& pair) { return pair.first == name; });
      if (known) return refuse("the key " + quote(name) + " appears twice in one object");
    } else {
      if (level.keys.empty())
        for (const auto& pair : members) level.keys.insert(pair.first);
      if (!level.keys.insert(name).second) return refuse("the key " + quote(name) + " appears twice in one object");
    }
    pending_ = append_member(members, std::move(name));
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // The library's text is "[json.exception...] parse error at line 1, column 2: what"; we say the place ourselves.
    std::string_view text = error.what();
    for (std::string_view mark : {"] ", ": "})
      if (const size_t place = text.find(mark); place != std::string_view::npos) text.remove_prefix(place + 2);
    return refuse(is_utf8(text) ? std::string(text) : quote(text));
  }

 private:
  struct Level {
    Json* value;
    std::unordered_set<std::string> keys;
  };

  bool refuse(std::string reason) {
    refusal_ = std::move(reason);
    return false;
  }

  template <typename Value>
  Json* place(Value&& value) {
    if (++values_ > max_values_) {
      refuse("more than " + std::to_string(max_values_) + " values");
      return nullptr;
    }
    if (levels_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    Json& parent = *levels_.back().value;
    if (parent.is_array()) {
      auto& items = parent.get_ref<Json::array_t&>();
      items.emplace_back(std::forward<Value>(value));
      return &items.back();
    }
    *pending_ = std::forward<Value>(value);
    return pending_;
  }

  template <typename Value>
  bool add(Value&& value) {
    return place(std::forward<Value>(value)) != nullptr;
  }

  bool open(Json container) {
    if (static_cast<int>(levels_.size()) >= max_depth_)
      return refuse("nested deeper than " + std::to_string(max_depth_) + " levels");
    Json* value = place(std::move(container));
    if (value == nullptr) return false;
    levels_.push_back({value, {}});
    return true;
  }

  bool close() {
    fit(*levels_.back().value);
    levels_.pop_back();
    return true;
  }

  int max_depth_;
  size_t max_values_;
  size_t values_ = 0;
  Json root_;
  Json* pending_ = nullptr;  // the value of the key that was read last
  std::vector<Level> levels_;
  std::string refusal_;
};

}  // namespace

std::string print_json(const Json& json) { return json.dump(); }

Json parse_json(std::string_view text, std::string_view source, int max_depth, size_t max_values) {
  const char* reached = text.data();
  DocumentBuilder builder(max_depth, max_values);
  const bool read = Json::sax_parse(TrackedIterator(text.data(), &reached),
                                    TrackedIterator(text.data() + text.size(), &reached), &builder);
  if (read) return std::move(builder.root());
  // The place of the last character that was read, counted from 1.
  const std::string_view before =
      text.substr(0, static_cast<size_t>(std::max<std::ptrdiff_t>(reached - text.data(), 1) - 1));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n');
  const size_t column = before.size() + 1 - (start == std::string_view::npos ? 0 : start + 1);
  throw_error(ErrorKind::invalid_input, source, ", line ", line, ", column ", column,
              ": not JSON that lissome reads: ", builder.refusal(), ".");
}

}  // namespace lissome
