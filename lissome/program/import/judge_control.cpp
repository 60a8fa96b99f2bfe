// What control nodes of a judged program say beside their operands: counts of carried and mapped values and the mode of
// a region. Interpretation takes them at their word.
#include <algorithm>
#include <charconv>

#include "lissome/base.h"
#include "lissome/program.h"
#include "lissome/program/check/gate.h"

namespace lissome {
namespace {

template <typename... Parts>
void require_control(bool condition, const Node& node, const Parts&... parts) {
  if (!condition) throw_error(ErrorKind::invalid_input, describe_node(node), ": ", parts...);
}

// A count among the literals before the operands.
int64_t read_control_count(const Node& node, size_t position, int64_t most) {
  const int64_t* count = position < node.arguments.size() ? node.arguments[position].get<int64_t>() : nullptr;
  require_control(count != nullptr && *count >= 0 && *count <= most, node, "argument ", position + 1,
                  " must be a number of values from 0 to ", most);
  return *count;
}

// "-,0,2": a batch dimension, or none, for each of `count` values.
bool is_dimension_list(std::string_view text, size_t count) {
  if (text.empty()) return count == 0;
  const std::vector<std::string> words = split(std::string(text), ',');
  return words.size() == count && std::all_of(words.begin(), words.end(), [](const std::string& word) {
           int64_t number = 0;
           const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
           return word == "-" || (error == std::errc() && end == word.data() + word.size() && number >= 0);
         });
}

bool is_region_mode(const std::string& mode, size_t operands, size_t results) {
  if (mode == "grad=0" || mode == "grad=1") return true;
  if (mode.starts_with("autocast=")) {
    const std::vector<std::string> parts = split(mode.substr(mode.find('=') + 1), ',');
    return parts.size() == 3 && (parts[0] == "cpu" || parts[0] == "cuda") && parse_dtype(parts[1]) &&
           (parts[2] == "0" || parts[2] == "1");
  }
  if (!mode.starts_with("vmap=")) return false;
  const std::vector<std::string> parts = split(mode.substr(mode.find('=') + 1), ';');
  return parts.size() == 3 && (parts[0] == "error" || parts[0] == "same" || parts[0] == "different") &&
         is_dimension_list(parts[1], operands) && is_dimension_list(parts[2], results) &&
         parts[1].find_first_not_of("-,") != std::string::npos;
}

}  // namespace

void judge_control(const Node& node) {
  const auto results = static_cast<int64_t>(node.results.size());
  const auto operands = [&](int64_t literals) { return static_cast<int64_t>(node.arguments.size()) - literals; };
  switch (node.op.control()) {
    case Control::while_loop: {
      const int64_t carried = read_control_count(node, 0, operands(1));
      require_control(carried == results, node, carried, " values are carried, ", results, " come out");
      break;
    }
    case Control::map: {
      const int64_t mapped = read_control_count(node, 0, operands(1));
      require_control(mapped > 0, node, "it maps over nothing");
      break;
    }
    case Control::scan: {
      const int64_t carried = read_control_count(node, 0, std::min(operands(3), results));
      const int64_t scanned = read_control_count(node, 1, operands(3) - carried);
      require_control(scanned > 0, node, "it scans nothing");
      require_control(node.arguments[2].get<bool>() != nullptr, node, "its direction must be true or false");
      break;
    }
    case Control::region: {
      const std::string* mode = node.arguments.empty() ? nullptr : node.arguments[0].get<std::string>();
      require_control(mode != nullptr && is_region_mode(*mode, node.arguments.size() - 1, node.results.size()), node,
                      "its mode is none of grad=, autocast=DEVICE,DTYPE,0 or 1, and vmap= with a dimension for each "
                      "operand and result");
      break;
    }
    case Control::cond:
    case Control::none: break;
  }
}

}  // namespace lissome
