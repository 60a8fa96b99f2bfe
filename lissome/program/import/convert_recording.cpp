// See convert_recording.h. Walks the calls of all recordings side by side (align_recordings); tensors go by their
// numbers in the base, each of which has one value of the program at a time: the newest.
#include "lissome/program/import/convert_recording.h"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <map>
#include <set>

#include "lissome/program/import/align_recordings.h"
#include "lissome/program/import/merge_numbers.h"
#include "lissome/program/purify/alias_sets.h"

namespace lissome {
namespace {

std::string full_name(const c10::FunctionSchema& schema) {
  return schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
}

// A call that took a number out of tensors into C++.
struct NumberRead {
  std::string op;
  std::vector<ValueId> arguments;
  Argument result;
};

class RecordingConverter {
 public:
  RecordingConverter(const RecordedModule& module, const std::vector<TracedInput>& inputs,
                     const std::vector<ModuleRun>& runs)
      : runs_(runs),
        aligned_(align_recordings(runs)),
        base_(aligned_.base->recording),
        numbers_(program_, list_sizes(runs)),
        types_(module.types) {
    values_.resize(base_.tensors.size(), ValueId::none);
    for (size_t i = 0; i < inputs.size(); ++i) add_input(inputs[i], i);
    size_t next = inputs.size();
    for (const StateTensor& state : module.state) {
      values_.at(next++) = program_.add_weight(state.name, state.tensor.detach(), state.role);
    }
    program_.training = module.training;
  }

  Program run() {
    for (size_t i = 0; i < base_.calls.size(); ++i) convert(i);
    for (size_t i = 0; i < base_.outputs.size(); ++i) add_output(i);
    check_reads();
    return std::move(program_);
  }

 private:
  // The same place in every recording.
  using Places = std::vector<const Argument*>;

  static std::vector<DimensionBindings> list_sizes(const std::vector<ModuleRun>& runs) {
    std::vector<DimensionBindings> sizes;
    for (const ModuleRun& run : runs) sizes.push_back(run.sizes);
    return sizes;
  }

  void add_input(const TracedInput& input, size_t index) {
    const at::Tensor& example = input.example;
    std::vector<Dimension> sizes(example.sizes().begin(), example.sizes().end());
    for (const auto& [position, dimension] : input.dynamic) {
      sizes[static_cast<size_t>(position)] = Dimension::named(dimension.name);
      const auto known = std::find_if(program_.dimensions.begin(), program_.dimensions.end(),
                                      [&](const NamedDimension& other) { return other.name == dimension.name; });
      if (known == program_.dimensions.end()) {
        program_.dimensions.push_back(dimension);
      } else {
        known->minimum = std::max(known->minimum, dimension.minimum);
        known->maximum = std::min(known->maximum, dimension.maximum);
      }
    }
    values_[index] =
        program_.add_input(input.name, {ValueKind::tensor, dtype_of(example.scalar_type()), true, std::move(sizes)});
    for (const auto& [position, dimension] : input.dynamic) {
      std::vector<int64_t> seen;
      for (const ModuleRun& run : runs_) seen.push_back(run.sizes.at(dimension.name));
      numbers_.add_size(values_[index], position, seen);
    }
  }

  void add_output(size_t index) {
    const std::string name = base_.outputs.size() == 1 ? "output" : "output." + std::to_string(index);
    const Argument& output = base_.outputs[index];
    program_.outputs.push_back({output.is_value() ? Argument(read_tensor(output.value())) : Argument(), name});
  }

  // ---- arguments

  // `ours` is the base's, and one of the places.
  Argument merge(const Argument& ours, const Places& places) {
    if (ours.is_value()) return read_tensor(ours.value());
    if (ours.get<int64_t>() != nullptr) return numbers_.merge_integers(read_all<int64_t>(places));
    if (ours.get<double>() != nullptr) return numbers_.merge_doubles(read_all<double>(places));
    if (ours.is_list()) {
      ArgumentList items;
      for (size_t i = 0; i < ours.list().size(); ++i) {
        Places inner;
        for (const Argument* place : places) inner.push_back(&place->list()[i]);
        items.push_back(merge(ours.list()[i], inner));
      }
      return items;
    }
    for (const Argument* other : places) {
      if (*other != ours) throw_error(ErrorKind::unsupported, "an argument depends on sizes or data");
    }
    return ours;
  }

  template <typename Number>
  static std::vector<Number> read_all(const Places& places) {
    std::vector<Number> numbers;
    for (const Argument* place : places) numbers.push_back(*place->get<Number>());
    return numbers;
  }

  ValueId read_tensor(ValueId number) {
    ValueId& value = values_.at(static_cast<size_t>(number));
    if (value == ValueId::none) value = add_constant(number);
    return value;
  }

  // What run `run` recorded of a tensor of the base.
  const RecordedTensor& find_tensor(size_t run, ValueId number) const {
    const ValueId there = aligned_.numbers[run].at(static_cast<size_t>(number));
    LISSOME_CHECK(there != ValueId::none, "tensor ", static_cast<int>(number), " has no counterpart");
    return runs_[run].recording.tensors.at(static_cast<size_t>(there));
  }

  // A tensor that no op made. What plain C++ computes from sizes or data cannot be seen, but that it differs can.
  ValueId add_constant(ValueId number) {
    const at::Tensor& contents = base_.tensors.at(static_cast<size_t>(number)).contents;
    for (size_t run = 0; run < runs_.size(); ++run) {
      if (same_contents(find_tensor(run, number).contents, contents)) continue;
      throw_error(ErrorKind::unsupported, "it reads a tensor that plain C++ filled with other numbers ",
                  runs_[run].sizes == aligned_.base->sizes ? "for other data" : "at " + print_sizes(runs_[run].sizes),
                  ". Compute it with ops (arange, where), which can be recorded");
    }
    constants_.insert(number);
    return program_.add_weight("constant." + std::to_string(constants_.size() - 1), contents, WeightRole::constant);
  }

  // ---- calls

  void convert(size_t position) {
    const RecordedCall& call = base_.calls[position];
    try {
      if (!call.problem.empty()) throw_error(ErrorKind::unsupported, call.problem);
      convert_call(position, call);
    } catch (const Error& error) {
      const std::string hint = reads_.empty() ? "" : "; " + reads_.back().op + " took a number out of a tensor before";
      throw Error(error.kind(), full_name(call.op.schema()) + where() + ": " + error.message() + hint);
    }
  }

  std::string where() const { return origin_ && !origin_->module.empty() ? " in or after " + origin_->module : ""; }

  void convert_call(size_t position, const RecordedCall& call) {
    const c10::FunctionSchema& schema = call.op.schema();
    if (is_filled_by_memory(call)) return;
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      const auto* alias = schema.arguments()[i].alias_info();
      if (alias != nullptr && alias->isWrite()) check_write(call.arguments[i]);
    }
    Node node{Op::find(full_name(schema)), {}, {}, {}, nullptr};
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      Places places;
      for (const auto& calls : aligned_.calls) {
        places.push_back(&(calls[position] == nullptr ? call : *calls[position]).arguments[i]);
      }
      node.arguments.push_back(merge(call.arguments[i], places));
    }
    const Effects effects = find_effects(program_, node);
    for (const int position : effects.writes) check_write(call.arguments[static_cast<size_t>(position)]);
    if (gives_numbers(call)) return note_read(node, effects, call);
    node.origin = find_origin(node.arguments);
    for (const Argument& result : call.results) node.results.push_back(add_result(result));
    program_.nodes.push_back(node);
    for (size_t i = 0; i < call.results.size(); ++i) name_items(call.results[i], node.results[i], node.origin);
  }

  // An empty tensor whose contents came by way of its memory: a constant.
  bool is_filled_by_memory(const RecordedCall& call) const {
    if (call.results.size() != 1 || !call.results[0].is_value()) return false;
    const auto number = static_cast<size_t>(call.results[0].value());
    const bool given = std::find(call.arguments.begin(), call.arguments.end(), call.results[0]) != call.arguments.end();
    return !given && values_[number] == ValueId::none && base_.tensors[number].contents.defined();
  }

  void check_write(const Argument& written) const {
    for_each_value(written, [&](ValueId number) {
      const auto index = static_cast<size_t>(number);
      const bool from_elsewhere = constants_.contains(number) ||
                                  (values_.at(index) == ValueId::none && base_.tensors[index].contents.defined());
      if (from_elsewhere)
        throw_error(ErrorKind::unsupported,
                    "it writes to a tensor that the module neither got as an input nor "
                    "registered. Register it with register_buffer()");
    });
  }

  static bool gives_numbers(const RecordedCall& call) {
    if (call.results.empty()) return false;
    return std::none_of(call.results.begin(), call.results.end(), [](const Argument& result) {
      bool tensor = result.is_none();
      for_each_value(result, [&](ValueId) { tensor = true; });
      return tensor || (result.is_list() && result.list().empty());
    });
  }

  void note_read(const Node& node, const Effects& effects, const RecordedCall& call) {
    if (!effects.shape_from_data) return;  // of looks alone: sizes, element types
    NumberRead read{full_name(call.op.schema()) + where(), {}, call.results[0]};
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId id) { read.arguments.push_back(id); });
    }
    reads_.push_back(std::move(read));
  }

  ValueId add_result(const Argument& result) {
    ValueType type;
    if (result.is_none()) type.kind = ValueKind::none;
    if (result.is_list()) type.kind = ValueKind::list;
    if (result.get<int64_t>() != nullptr) type.kind = ValueKind::integer;
    if (result.get<double>() != nullptr) type.kind = ValueKind::floating;
    if (result.get<bool>() != nullptr) type.kind = ValueKind::boolean;
    if (result.is_value()) type = read_type(result.value());
    const ValueId id = program_.add_value(std::move(type));
    if (result.is_value()) name_tensor(result.value(), id);
    return id;
  }

  // After a write the newest name of a tensor is the one to use.
  void name_tensor(ValueId number, ValueId id) {
    const auto index = static_cast<size_t>(number);
    values_.at(index) = id;
    const std::vector<int64_t>& sizes = base_.tensors[index].sizes;
    for (size_t place = 0; place < sizes.size(); ++place) {
      const auto seen = list_seen(number, place);
      if (seen) numbers_.add_size(id, static_cast<int64_t>(place), *seen);
    }
  }

  // One size of a tensor in every recording; nothing where it has fewer dimensions in some.
  std::optional<std::vector<int64_t>> list_seen(ValueId number, size_t place) const {
    const size_t rank = base_.tensors.at(static_cast<size_t>(number)).sizes.size();
    std::vector<int64_t> seen;
    for (size_t run = 0; run < runs_.size(); ++run) {
      const std::vector<int64_t>& sizes = find_tensor(run, number).sizes;
      if (sizes.size() != rank) return std::nullopt;
      seen.push_back(sizes[place]);
    }
    return seen;
  }

  ValueType read_type(ValueId number) {
    const auto index = static_cast<size_t>(number);
    ValueType type{ValueKind::tensor, dtype_of(base_.tensors.at(index).dtype), true, {}};
    for (size_t place = 0; place < base_.tensors[index].sizes.size() && type.sized; ++place) {
      const auto seen = list_seen(number, place);
      const auto size = seen ? numbers_.find_dimension(*seen) : std::nullopt;
      type.sized = size.has_value();
      if (size) type.sizes.push_back(*size);
    }
    if (!type.sized) type.sizes.clear();
    return type;
  }

  void name_items(const Argument& result, ValueId list, const std::shared_ptr<const Origin>& origin) {
    if (!result.is_list()) return;
    int64_t index = 0;
    for (const Argument& item : result.list()) {
      const int64_t position = index++;
      if (!item.is_value()) continue;
      const Node& node =
          program_.add_node(Op::find("lissome::getitem"), {list, position}, {read_type(item.value())}, origin);
      name_tensor(item.value(), node.result());
    }
  }

  // Reports speak of modules: the one whose weights the node reads, else the one before it.
  std::shared_ptr<const Origin> find_origin(const ArgumentList& arguments) {
    const Weight* owner = nullptr;
    for (const Argument& argument : arguments) {
      for_each_value(argument, [&](ValueId id) {
        const Weight* weight = program_.find_weight(id);
        if (owner == nullptr && weight != nullptr && weight->role != WeightRole::constant) owner = weight;
      });
    }
    if (owner == nullptr) return origin_;
    const size_t dot = owner->name.rfind('.');
    const std::string path = dot == std::string::npos ? std::string() : owner->name.substr(0, dot);
    if (origin_ && origin_->module == path) return origin_;
    Origin origin;
    origin.module = path;
    if (const auto type = types_.find(path); type != types_.end()) origin.module_type = type->second;
    return origin_ = std::make_shared<const Origin>(std::move(origin));
  }

  // ---- numbers that C++ took out of tensors

  // Values that may hold something else in another call: what inputs, random numbers and written state reach.
  std::set<int> find_changing_classes(const AliasSets& sets) const {
    std::set<int> changing;
    for (const ProgramInput& input : program_.inputs) changing.insert(sets.find_class(input.value));
    for (const Weight& weight : program_.weights) {
      if (program_.training || sets.is_written(weight.value)) changing.insert(sets.find_class(weight.value));
    }
    for (size_t before = changing.size() + 1; before != changing.size();) {
      before = changing.size();
      for (const Node& node : program_.nodes) spread(node, sets, changing);
    }
    return changing;
  }

  void spread(const Node& node, const AliasSets& sets, std::set<int>& changing) const {
    // Sizes and element types are known by other means.
    if (node.is("aten::sym_size.int")) return;
    const Effects effects = find_effects(program_, node);
    bool changes = effects.random;
    for (const Argument& argument : node.arguments) {
      for_each_value(argument, [&](ValueId id) { changes |= changing.contains(sets.find_class(id)); });
    }
    if (!changes) return;
    for (const ValueId result : node.results) changing.insert(sets.find_class(result));
    for (const int position : effects.writes) {
      for_each_value(node.arguments[static_cast<size_t>(position)],
                     [&](ValueId id) { changing.insert(sets.find_class(id)); });
    }
  }

  void check_reads() const {
    if (reads_.empty()) return;
    const AliasSets sets(program_);
    const std::set<int> changing = find_changing_classes(sets);
    for (const NumberRead& read : reads_) {
      const bool changes = std::any_of(read.arguments.begin(), read.arguments.end(),
                                       [&](ValueId id) { return changing.contains(sets.find_class(id)); });
      if (changes && !is_harmless(read))
        throw_error(ErrorKind::unsupported, read.op,
                    ": the module reads a number out of a tensor that depends on its "
                    "inputs, state or chance, so what it does next may depend on data. Keep the number in a tensor, "
                    "choose with where(), or do this outside of the module");
    }
  }

  // Code asks whether two tensors are one to save work (torch::nn::MultiheadAttention does). Of one tensor the answer
  // is always yes; of two the program takes the path for tensors that differ, as they did.
  static bool is_harmless(const NumberRead& read) {
    if (!read.op.starts_with("aten::equal") || read.arguments.size() != 2) return false;
    const bool* equal = read.result.get<bool>();
    return read.arguments[0] == read.arguments[1] || (equal != nullptr && !*equal);
  }

  const std::vector<ModuleRun>& runs_;
  const AlignedRecordings aligned_;
  const Recording& base_;
  Program program_;
  NumberMerger numbers_;
  std::vector<ValueId> values_;  // the newest name of each recorded tensor
  std::set<ValueId> constants_;  // by recorded number
  std::vector<NumberRead> reads_;
  const std::map<std::string, std::string>& types_;  // of modules, by path
  std::shared_ptr<const Origin> origin_;
};

}  // namespace

Program convert_recordings(const RecordedModule& module, const std::vector<TracedInput>& inputs,
                           const std::vector<ModuleRun>& runs) {
  return RecordingConverter(module, inputs, runs).run();
}

}  // namespace lissome
