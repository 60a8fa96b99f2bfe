// Equal work is done once: the first of equal pure nodes answers for all.

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "lissome/pass/match.h"
#include "lissome/pass/passes.h"

namespace lissome {
namespace {

// A key that is equal exactly for equal ops on equal arguments.
std::string make_key(const Rewriter& rewriter, const Node& node) {
  std::string key = node.op.name();
  const std::function<void(const Argument&)> append = [&](const Argument& argument) {
    key += '|';
    key += std::to_string(argument.data.index());
    key += ':';
    if (argument.is_list()) {
      key += std::to_string(argument.list().size());
      for (const Argument& item : argument.list()) append(item);
    } else if (argument.is_value()) {
      key += std::to_string(static_cast<int>(argument.value()));
    } else if (const auto* number = argument.get<double>()) {
      key.append(reinterpret_cast<const char*>(number), sizeof *number);  // by bits: -0.0 is not 0.0
    } else if (const auto* integer = argument.get<int64_t>()) {
      key += std::to_string(*integer);
    } else if (const auto* flag = argument.get<bool>()) {
      key += *flag ? 't' : 'f';
    } else if (const auto* text = argument.get<std::string>()) {
      key += std::to_string(text->size()) + ',' + *text;
    } else if (const auto* dtype = argument.get<Dtype>()) {
      key += std::to_string(static_cast<int>(*dtype));
    } else if (const auto* layout = argument.get<Layout>()) {
      key += std::to_string(static_cast<int>(*layout));
    } else if (const auto* format = argument.get<MemoryFormat>()) {
      key += std::to_string(static_cast<int>(*format));
    } else if (const auto* device = argument.get<Device>()) {
      key += device->name;
    } else if (const auto* complex = argument.get<std::complex<double>>()) {
      key.append(reinterpret_cast<const char*>(complex), sizeof *complex);
    }
  };
  ArgumentList arguments;
  for (const Argument& argument : node.arguments) arguments.push_back(rewriter.resolve(argument));
  // a + b is b + a to the last bit.
  const bool commutes = node.is("aten::mul.Tensor") || (node.is("aten::add.Tensor") && has_unit_alpha(node));
  if (commutes && arguments[0].is_value() && arguments[1].is_value() && arguments[1].value() < arguments[0].value()) {
    std::swap(arguments[0], arguments[1]);
  }
  std::for_each(arguments.begin(), arguments.end(), append);
  return key;
}

// A file may claim different types for results of equal calls, where these cannot be tried while it is read.
bool have_equal_types(const Rewriter& rewriter, const Node& first, const Node& second) {
  for (size_t i = 0; i < first.results.size(); ++i) {
    if (first.results[i] == ValueId::none || second.results[i] == ValueId::none) continue;
    const ValueType &one = rewriter.type_of(first.results[i]), &other = rewriter.type_of(second.results[i]);
    if (one.kind == ValueKind::tensor && other.kind == ValueKind::tensor && one.dtype != other.dtype) return false;
  }
  return true;
}

}  // namespace

int merge_common_subexpressions(Program& program) {
  Rewriter rewriter(program);
  std::map<std::string, int> seen;
  for (int position = 0; position < rewriter.node_count(); ++position) {
    const Node& node = rewriter.node(position);
    if (!node.op.has_schema() || node.results.empty() || !is_pure(program, node)) continue;
    const auto [entry, fresh] = seen.try_emplace(make_key(rewriter, node), position);
    if (fresh) continue;
    Node& first = rewriter.node(entry->second);
    if (!have_equal_types(rewriter, first, node)) continue;
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (node.results[i] == ValueId::none) continue;
      // Nobody read it there until now.
      if (first.results[i] == ValueId::none) first.results[i] = program.add_value(rewriter.type_of(node.results[i]));
      rewriter.replace_value(node.results[i], first.results[i]);
    }
  }
  return rewriter.finish();
}

}  // namespace lissome
