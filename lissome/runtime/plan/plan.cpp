#include "lissome/runtime/plan/plan.h"

#include <algorithm>
#include <array>
#include <set>

#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

template <typename Enum, size_t Count>
std::optional<Enum> find_name(const std::array<std::string_view, Count>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

constexpr std::array<std::string_view, 6> kStorageNames = {"input", "constant", "state", "arena", "view", "held"};
constexpr std::array<std::string_view, 5> kKindNames = {"tensor", "integer", "floating", "boolean", "other"};
constexpr std::array<std::string_view, 2> kFormatNames = {"row_major", "channels_last"};

// How a number lies in memory; f32, which none does, for other kinds.
Dtype number_dtype(PlanKind kind) {
  switch (kind) {
    case PlanKind::integer: return Dtype::i64;
    case PlanKind::floating: return Dtype::f64;
    case PlanKind::boolean: return Dtype::boolean;
    default: return Dtype::f32;
  }
}

[[noreturn]] void refuse_attribute(std::string_view name, std::string_view wanted) {
  throw_error(ErrorKind::invalid_input, "plan: attribute ", quote(name), " of a step is not ", wanted);
}

template <typename T>
const T* read(const Attributes& attributes, std::string_view name, std::string_view wanted) {
  const Attribute* attribute = attributes.find(name);
  if (!attribute) return nullptr;
  const T* value = std::get_if<T>(attribute);
  if (!value) refuse_attribute(name, wanted);
  return value;
}

// Far above what models have; what is planned over them takes time that grows with their square.
constexpr size_t kMostSteps = size_t{1} << 17, kMostValues = size_t{1} << 18;
constexpr size_t kMostSizes = 64;  // dimensions of one value
constexpr size_t kMostRequirements = 100'000;

// "cpu", or what PyTorch calls a CUDA device: "cuda", "cuda:1".
bool is_device(std::string_view name) {
  if (name == "cpu" || name == "cuda") return true;
  constexpr std::string_view kNumbered = "cuda:";
  if (!name.starts_with(kNumbered)) return false;
  name.remove_prefix(kNumbered.size());
  return !name.empty() && name.size() <= 3 && name.find_first_not_of("0123456789") == std::string_view::npos;
}

class PlanChecker {
 public:
  explicit PlanChecker(const Plan& plan) : plan_(plan), defined_(plan.values.size(), false) {}

  void check() {
    require(is_device(plan_.device), "there is no device ", quote(plan_.device), ", only cpu, cuda and cuda:N");
    require(plan_.steps.size() <= kMostSteps && plan_.values.size() <= kMostValues, plan_.steps.size(), " steps and ",
            plan_.values.size(), " values, at most ", kMostSteps, " and ", kMostValues, " are taken");
    check_dimensions();
    require(plan_.requirements.size() <= kMostRequirements, plan_.requirements.size(), " requirements, at most ",
            kMostRequirements, " are taken");
    for (const PlanValue& value : plan_.values) check_value(value);
    check_inputs();
    check_arrays();
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      check_values(plan_.steps[i]);
      if (plan_.steps[i].kernel != kReferenceStep) check_step(plan_, static_cast<int>(i));
      for (const PlanOutput& output : plan_.outputs) {
        if (output.leaves_after == static_cast<int>(i)) use(output.value);
      }
    }
    for (const PlanValue& value : plan_.values) check_kind(value);  // steps name what they read, so they come first
    check_outputs();
    std::set<PlanValueId> targets;
    for (const PlanWrite& write : plan_.writes) {
      check_write(write);
      require(targets.insert(write.target).second, "value ", at(write.target).name, " is written twice");
    }
  }

 private:
  template <typename... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) throw_error(ErrorKind::invalid_input, "plan: ", parts...);
  }
  const PlanValue& at(PlanValueId id) const {
    require(is_value(id) && static_cast<size_t>(id) < plan_.values.size(), "there is no value ", static_cast<int>(id),
            ", only ", plan_.values.size());
    return plan_.value(id);
  }
  void define(PlanValueId id) {
    require(!defined_[static_cast<size_t>(id)], "value ", at(id).name, " is made twice");
    defined_[static_cast<size_t>(id)] = true;
  }
  void use(PlanValueId id) const {
    require(at(id).sized || at(id).storage == Storage::held || at(id).kind != PlanKind::tensor, "value ", at(id).name,
            " has no sizes");
    require(defined_[static_cast<size_t>(id)], "value ", at(id).name, " is used before it is made");
  }

  void check_dimensions() {
    std::set<std::string_view> names;
    for (const PlanDimension& dimension : plan_.dimensions) {
      require(!dimension.name.empty() && names.insert(dimension.name).second, "two dimensions are called ",
              quote(dimension.name), ", or one has no name");
      require(dimension.minimum >= 0 && dimension.minimum <= dimension.maximum, "dimension ", quote(dimension.name),
              " lies in ", dimension.minimum, "..", dimension.maximum);
      smallest_.push_back(dimension.minimum);
    }
  }

  // The bytes that the smallest inputs give it: a value that no machine holds even then is the plan's fault. Each size
  // counts as 1 at least: loops go over the others where one is 0.
  void check_value(const PlanValue& value) const {
    require(value.sizes.size() <= kMostSizes, "value ", value.name, " has ", value.sizes.size(),
            " dimensions, at most ", kMostSizes, " are taken");
    int64_t bytes = item_size(value.dtype);
    for (const SizeExpression& size : value.sizes) {
      const auto number = size.evaluate(smallest_);
      require(!size.constant() || *number >= 0, "value ", value.name, " has a size of ", size.text());
      if (!number || *number < 0) return;  // n - 3 of the smallest n: judged with the inputs
      require(!__builtin_mul_overflow(bytes, std::max<int64_t>(*number, 1), &bytes) && bytes <= kLargestBytes, "value ",
              value.name, " is larger than ", kLargestBytes, " bytes, sizes of 0 counted as 1");
    }
  }

  void check_kind(const PlanValue& value) const {
    require(value.kind == PlanKind::tensor || value.storage == Storage::input || value.storage == Storage::held,
            "value ", value.name, " is a ", plan_kind_name(value.kind), " and stored as ", storage_name(value.storage),
            "; only inputs and held values are numbers");
  }

  void check_inputs() {
    std::set<std::string_view> names;
    for (const PlanInput& input : plan_.inputs) {
      const PlanValue& value = at(input.value);
      require(names.insert(input.name).second, "two inputs are called ", quote(input.name));
      require(value.storage == Storage::input, "input ", quote(input.name), " is stored as something else");
      require(value.sized || value.kind != PlanKind::tensor, "input ", quote(input.name), " has no sizes");
      require(value.kind == PlanKind::tensor || (value.sizes.empty() && value.dtype == number_dtype(value.kind)),
              "input ", quote(input.name), " is a ", plan_kind_name(value.kind), " stored as ",
              dtype_name(value.dtype));
      define(input.value);
    }
  }

  void check_arrays() {
    std::vector<int> readers(plan_.arrays.size(), 0);
    for (const PlanValueId id : plan_.value_ids()) {
      const PlanValue& value = plan_.value(id);
      if (value.storage != Storage::constant && value.storage != Storage::state) continue;
      require(value.array >= 0 && static_cast<size_t>(value.array) < plan_.arrays.size(), "value ", value.name,
              " has no array");
      const auto array_at = static_cast<size_t>(value.array);
      const Array& array = plan_.arrays[array_at].array;
      Sizes sizes;
      for (const SizeExpression& size : value.sizes) sizes.push_back(size.constant().value_or(-1));
      require(array.dtype == value.dtype && array.sizes == sizes, "value ", value.name, " is ", dtype_name(value.dtype),
              format_sizes(sizes), ", its array ", dtype_name(array.dtype), format_sizes(array.sizes));
      ++readers[array_at];
      define(id);
    }
    // A session writes into its copy of the array, which nothing else may read as a constant.
    for (const PlanValue& value : plan_.values) {
      require(value.storage != Storage::state || readers[static_cast<size_t>(value.array)] == 1, "the array of state ",
              value.name, " belongs to another value too");
    }
  }

  void check_values(const PlanStep& step) {
    const bool reference = step.kernel == kReferenceStep;
    for (const PlanValueId id : step.operands) {
      require(is_value(id) || !reference, "an operand of a step of ", quote(step.kernel), " is missing");
      if (id != PlanValueId::none) use(id);
    }
    require(reference || plan_.device == "cpu", "a step of ", quote(step.kernel), " cannot run on ", plan_.device);
    for (const auto& [name, value] : step.attributes.entries) {
      // Plans of before said that a step copies its inputs, which is derived now.
      require(!reference || name == "copies_inputs", "a step of ", quote(step.kernel), ": it has no attribute ",
              quote(name));
    }
    for (const PlanOrigin& origin : step.origins) {
      require(origin.choice >= -1 && origin.choice < static_cast<int>(plan_.choices.size()), "a step of ",
              quote(step.kernel), " names the choice ", origin.choice, " of ", plan_.choices.size());
    }
    require(reference || !step.results.empty(), "a step of ", quote(step.kernel), " makes nothing");
    for (const PlanValueId id : step.results) {
      const Storage storage = at(id).storage;
      require((storage == Storage::held) == reference && storage != Storage::input && storage != Storage::constant &&
                  storage != Storage::state,
              "value ", at(id).name, " cannot be the result of ", quote(step.kernel));
      require(storage != Storage::view || (!step.operands.empty() && is_value(step.operands[0])), "value ", at(id).name,
              " is a view of nothing");
      define(id);
    }
  }

  void check_outputs() const {
    std::set<std::string_view> names;
    for (const PlanOutput& output : plan_.outputs) {
      require(names.insert(output.name).second, "two outputs are called ", quote(output.name));
      if (is_value(output.value)) use(output.value);
      require(output.leaves_after < static_cast<int>(plan_.steps.size()), "output ", quote(output.name),
              " leaves after the last step");
    }
  }

  void check_write(const PlanWrite& write) const {
    use(write.value);
    use(write.target);
    const PlanValue &target = at(write.target), &value = at(write.value);
    require(target.storage == Storage::state || target.storage == Storage::input, "a write goes to ", target.name,
            ", which is neither state nor an input");
    require(!value.sized || value.dtype == target.dtype, "a write of ", dtype_name(value.dtype), " goes to ",
            target.name, ", which is ", dtype_name(target.dtype));
  }

  const Plan& plan_;
  std::vector<bool> defined_;
  DimensionValues smallest_;
};

}  // namespace

void Attributes::set(std::string name, Attribute value) {
  for (auto& [entry_name, entry] : entries) {
    if (entry_name == name) {
      entry = std::move(value);
      return;
    }
  }
  entries.emplace_back(std::move(name), std::move(value));
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [entry_name, entry] : entries) {
    if (entry_name == name) return &entry;
  }
  return nullptr;
}

int64_t Attributes::integer(std::string_view name) const {
  const auto* value = read<int64_t>(*this, name, "an integer");
  if (!value) refuse_attribute(name, "there");
  return *value;
}

int64_t Attributes::integer(std::string_view name, int64_t fallback) const {
  const auto* value = read<int64_t>(*this, name, "an integer");
  return value ? *value : fallback;
}

double Attributes::number(std::string_view name, double fallback) const {
  const Attribute* attribute = find(name);
  if (attribute && std::holds_alternative<int64_t>(*attribute)) {
    return static_cast<double>(std::get<int64_t>(*attribute));
  }
  const auto* value = read<double>(*this, name, "a number");
  return value ? *value : fallback;
}

std::string Attributes::text(std::string_view name, std::string_view fallback) const {
  const auto* value = read<std::string>(*this, name, "text");
  return value ? *value : std::string(fallback);
}

std::vector<int64_t> Attributes::integers(std::string_view name) const {
  const auto* value = read<std::vector<int64_t>>(*this, name, "a list of integers");
  if (!value) refuse_attribute(name, "there");
  return *value;
}

std::vector<std::string> Attributes::texts(std::string_view name) const {
  const auto* value = read<std::vector<std::string>>(*this, name, "a list of texts");
  if (!value) refuse_attribute(name, "there");
  return *value;
}

PlanValueId Plan::add_value(PlanValue value) {
  values.push_back(std::move(value));
  return static_cast<PlanValueId>(values.size() - 1);
}

std::vector<PlanValueId> Plan::value_ids() const {
  std::vector<PlanValueId> ids(values.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<PlanValueId>(i);
  return ids;
}

bool Plan::needs_reference() const {
  return std::any_of(steps.begin(), steps.end(), [](const PlanStep& step) { return step.kernel == kReferenceStep; });
}

std::string describe_other_machine(const PlanMachine& made, int threads) {
  std::vector<std::string> differences;
  const auto compare = [&](const std::string& before, const std::string& here) {
    if (before != here) differences.push_back(before + " (here: " + here + ")");
  };
  compare(made.processor, processor_name());
  compare(made.features, describe_features());
  compare(std::to_string(made.threads) + " threads", std::to_string(threads) + " threads");
  if (differences.empty()) return {};
  return "the kernels were chosen on " + join(differences, ", ") +
         "; to choose them anew, prepare the original model here";
}

void check_plan(const Plan& plan) { PlanChecker(plan).check(); }

std::string_view storage_name(Storage storage) { return kStorageNames.at(static_cast<size_t>(storage)); }
std::string_view plan_kind_name(PlanKind kind) { return kKindNames.at(static_cast<size_t>(kind)); }
std::string_view format_name(Format format) { return kFormatNames.at(static_cast<size_t>(format)); }
std::optional<Storage> parse_storage(std::string_view name) { return find_name<Storage>(kStorageNames, name); }
std::optional<PlanKind> parse_plan_kind(std::string_view name) { return find_name<PlanKind>(kKindNames, name); }
std::optional<Format> parse_format(std::string_view name) { return find_name<Format>(kFormatNames, name); }

Sizes dense_strides(std::span<const int64_t> sizes, Format format) {
  const size_t rank = sizes.size();
  if (format == Format::row_major || rank < 3 || rank > 5) return contiguous_strides(sizes);
  Sizes strides(rank);
  int64_t stride = std::max<int64_t>(sizes[1], 1);
  strides[1] = 1;
  for (size_t i = rank; i-- > 2;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  strides[0] = stride;
  return strides;
}

}  // namespace lissome
