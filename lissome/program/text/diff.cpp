// What a pass did, as a unified diff of program text. Lines are compared as printed, without source lines. Where values
// were renumbered, those of the second program first get the names of the nodes that compute the same in the first, and
// the shorter of the two diffs is shown.
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "lissome/program.h"

namespace lissome {
namespace {

constexpr int kContext = 3;
constexpr size_t kMaxEdits = 2000;  // beyond, one block is shown as replaced: the search is quadratic in them

struct Edit {
  char kind;  // ' ', '-', '+'
  size_t left, right;
};

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

using Lines = std::vector<std::string_view>;

// Myers' greedy search for the shortest edit script: furthest[k] is how far along the left one gets on diagonal
// k = left - right with d edits; every d's state is kept to walk back.
std::vector<Edit> find_edits(const Lines& left, const Lines& right) {
  const auto n = static_cast<std::ptrdiff_t>(left.size()), m = static_cast<std::ptrdiff_t>(right.size());
  const auto most = std::min(static_cast<std::ptrdiff_t>(kMaxEdits), n + m);
  std::vector<std::vector<int32_t>> trace;
  std::vector<int32_t> furthest(static_cast<size_t>(2 * most + 3), 0);
  const auto at = [&](std::vector<int32_t>& state, std::ptrdiff_t k) -> int32_t& {
    return state[static_cast<size_t>(k + most + 1)];
  };
  std::ptrdiff_t edits = -1;
  for (std::ptrdiff_t d = 0; d <= most && edits < 0; ++d) {
    trace.push_back(furthest);
    for (std::ptrdiff_t k = -d; k <= d; k += 2) {
      const bool down = k == -d || (k != d && at(furthest, k - 1) < at(furthest, k + 1));
      std::ptrdiff_t x = down ? at(furthest, k + 1) : at(furthest, k - 1) + 1;
      while (x < n && x - k < m && left[static_cast<size_t>(x)] == right[static_cast<size_t>(x - k)]) ++x;
      at(furthest, k) = static_cast<int32_t>(x);
      if (x >= n && x - k >= m) edits = d;
    }
  }
  std::vector<Edit> script;
  std::ptrdiff_t x = n, y = m;
  if (edits < 0) {  // too different: everything is replaced
    for (; y > 0; --y) script.push_back({'+', left.size(), static_cast<size_t>(y - 1)});
    for (; x > 0; --x) script.push_back({'-', static_cast<size_t>(x - 1), 0});
    std::reverse(script.begin(), script.end());
    return script;
  }
  for (std::ptrdiff_t d = edits; d >= 0; --d) {
    auto& state = trace[static_cast<size_t>(d)];
    const std::ptrdiff_t k = x - y;
    const bool down = d > 0 && (k == -d || (k != d && at(state, k - 1) < at(state, k + 1)));
    const std::ptrdiff_t from = d == 0 ? 0 : down ? at(state, k + 1) : at(state, k - 1) + 1;
    for (; x > from; --x, --y) script.push_back({' ', static_cast<size_t>(x - 1), static_cast<size_t>(y - 1)});
    if (d == 0) break;
    if (down) {
      script.push_back({'+', static_cast<size_t>(x), static_cast<size_t>(--y)});
    } else {
      script.push_back({'-', static_cast<size_t>(--x), static_cast<size_t>(y)});
    }
  }
  std::reverse(script.begin(), script.end());
  return script;
}

// Equal ends are taken off before the search, which then only sees the part that changed.
std::vector<Edit> compare_lines(const Lines& left, const Lines& right) {
  size_t head = 0, tail = 0;
  const size_t shorter = std::min(left.size(), right.size());
  while (head < shorter && left[head] == right[head]) ++head;
  while (tail < shorter - head && left[left.size() - 1 - tail] == right[right.size() - 1 - tail]) ++tail;
  std::vector<Edit> script;
  for (size_t i = 0; i < head; ++i) script.push_back({' ', i, i});
  const auto middle = [&](const Lines& lines) {
    return Lines(lines.begin() + static_cast<std::ptrdiff_t>(head), lines.end() - static_cast<std::ptrdiff_t>(tail));
  };
  for (Edit edit : find_edits(middle(left), middle(right))) {
    script.push_back({edit.kind, edit.left + head, edit.right + head});
  }
  for (size_t i = tail; i > 0; --i) script.push_back({' ', left.size() - i, right.size() - i});
  return script;
}

// Hunks with their context, as in `diff -u`.
std::string print_edits(const std::vector<Edit>& script, const Lines& left, const Lines& right) {
  std::string text;
  for (size_t i = 0; i < script.size();) {
    if (script[i].kind == ' ') {
      ++i;
      continue;
    }
    const size_t start = i - std::min(i, static_cast<size_t>(kContext));
    size_t end = i + 1;  // behind the last change of the hunk
    for (size_t j = end; j < script.size() && j <= end + 2 * kContext; ++j) {
      if (script[j].kind != ' ') end = j + 1;
    }
    const size_t stop = std::min(end + kContext, script.size());
    size_t left_lines = 0, right_lines = 0;
    std::string body;
    for (size_t j = start; j < stop; ++j) {
      const Edit& edit = script[j];
      left_lines += edit.kind != '+';
      right_lines += edit.kind != '-';
      body += edit.kind;
      body += edit.kind == '+' ? right[edit.right] : left[edit.left];
      body += '\n';
    }
    const auto range = [](size_t first, size_t count) {
      return std::to_string(count == 0 ? first : first + 1) + "," + std::to_string(count);
    };
    text += "@@ -" + range(script[start].left, left_lines) + " +" + range(script[start].right, right_lines) + " @@\n" +
            body;
    i = stop;
  }
  return text;
}

bool is_anonymous(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

// What each result computes, independent of names of anonymous values: op, literals and what its operands compute.
class Meanings {
 public:
  explicit Meanings(const Program& program) : program_(program) {
    for (const ProgramInput& input : program.inputs) set(input.value, "input " + input.name);
    for (const Weight& weight : program.weights) set(weight.value, "weight " + weight.name);
    for (const Node& node : program.nodes) {
      std::string text = node.op.name();
      for (const Argument& argument : node.arguments) add(text, argument);
      for (const auto& body : node.bodies) text += body ? print_program(*body, {.origins = false}) : "";
      for (size_t i = 0; i < node.results.size(); ++i) set(node.results[i], text + "#" + std::to_string(i));
    }
  }
  size_t of(ValueId id) const {
    const auto found = hashes_.find(id);
    return found == hashes_.end() ? 0 : found->second;
  }

 private:
  void set(ValueId id, const std::string& text) { hashes_[id] = std::hash<std::string>{}(text); }
  void add(std::string& text, const Argument& argument) {
    text += ' ';
    if (argument.is_value()) {
      text += '%' + std::to_string(of(argument.value()));
    } else if (argument.is_list()) {
      text += '[';
      for (const Argument& item : argument.list()) add(text, item);
      text += ']';
    } else {
      text += print_argument(program_, argument);
    }
  }

  const Program& program_;
  std::unordered_map<ValueId, size_t> hashes_;
};

// A copy of `after` whose anonymous results are called as in `before` where they compute the same.
Program align_names(const Program& before, const Program& after) {
  const Meanings left(before), right(after);
  std::unordered_multimap<size_t, std::string> names;
  int64_t next = 0;
  for (const Node& node : before.nodes) {
    for (const ValueId id : node.results) {
      if (id == ValueId::none || !is_anonymous(before.value(id).name)) continue;
      const std::string& name = before.value(id).name;
      names.emplace(left.of(id), name);
      if (name.size() < 18) next = std::max<int64_t>(next, std::stoll(name) + 1);
    }
  }
  Program aligned = after;
  std::unordered_set<std::string> taken;
  for (const Value& value : after.values) {
    if (!is_anonymous(value.name)) taken.insert(value.name);
  }
  std::vector<ValueId> nameless;
  for (const Node& node : after.nodes) {
    for (const ValueId id : node.results) {
      if (id == ValueId::none || !is_anonymous(after.value(id).name)) continue;
      const auto found = names.find(right.of(id));
      if (found == names.end() || !taken.insert(found->second).second) {
        nameless.push_back(id);
        continue;
      }
      aligned.value(id).name = found->second;
      names.erase(found);
    }
  }
  for (const ValueId id : nameless) {
    // Its own name, unless that now belongs to another.
    std::string name = after.value(id).name;
    while (!taken.insert(name).second) name = std::to_string(next++);
    aligned.value(id).name = name;
  }
  return aligned;
}

size_t count_changes(const std::vector<Edit>& script) {
  return static_cast<size_t>(
      std::count_if(script.begin(), script.end(), [](const Edit& edit) { return edit.kind != ' '; }));
}

}  // namespace

std::string diff_lines(std::string_view before, std::string_view after) {
  const Lines left = split_lines(before), right = split_lines(after);
  return print_edits(compare_lines(left, right), left, right);
}

std::string diff_programs(const Program& before, const Program& after) {
  const PrintOptions options{.origins = false};
  const std::string left_text = print_program(before, options);
  const std::string plain_text = print_program(after, options);
  if (left_text == plain_text) return "";
  const std::string aligned_text = print_program(align_names(before, after), options);
  const Lines left = split_lines(left_text), plain = split_lines(plain_text), aligned = split_lines(aligned_text);
  const auto plain_script = compare_lines(left, plain);
  const auto aligned_script = compare_lines(left, aligned);
  if (count_changes(aligned_script) < count_changes(plain_script)) return print_edits(aligned_script, left, aligned);
  return print_edits(plain_script, left, plain);
}

}  // namespace lissome
