// Interned facts of ops. A schema op is what the dispatcher knows by that name; control ops are ours alone. Facts live
// as long as the process, so that an Op is one pointer and comparing ops is comparing pointers.
#include "lissome/program/op.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "lissome/allow_op.h"
#include "lissome/base.h"

namespace lissome {

struct Op::Facts {
  std::string name;
  Control control = Control::none;
  std::optional<c10::OperatorHandle> handle;
  Op self;  // so that try_find can hand out a stable pointer
};

namespace {

constexpr std::array<std::string_view, 6> kControlNames = {
    "", "lissome::cond", "lissome::while_loop", "lissome::map", "lissome::scan", "lissome::region"};

// "aten::add.default" and "aten::add" are one op.
std::string normalize_name(std::string_view name) {
  constexpr std::string_view kDefault = ".default";
  if (name.ends_with(kDefault)) name.remove_suffix(kDefault.size());
  return std::string(name);
}

std::optional<c10::OperatorHandle> find_handle(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return c10::Dispatcher::singleton().findSchema({name, ""});
  return c10::Dispatcher::singleton().findSchema({name.substr(0, dot), name.substr(dot + 1)});
}

std::string find_nearest_op(const std::string& name) {
  std::vector<std::string> known;
  for (const c10::OperatorName& other : c10::Dispatcher::singleton().getAllOpNames()) {
    known.push_back(other.overload_name.empty() ? other.name : other.name + "." + other.overload_name);
  }
  return find_nearest(name, known);
}

}  // namespace

const Op* Op::try_find(std::string_view name) {
  static std::shared_mutex mutex;
  static auto* const interned = new std::map<std::string, std::unique_ptr<Facts>, std::less<>>;
  {
    std::shared_lock lock(mutex);
    if (const auto found = interned->find(name); found != interned->end()) return &found->second->self;
  }
  register_ops();
  const std::string full_name = normalize_name(name);
  std::unique_lock lock(mutex);
  auto found = interned->find(full_name);
  if (found == interned->end()) {
    auto facts = std::make_unique<Facts>();
    facts->name = full_name;
    for (size_t kind = 1; kind < kControlNames.size(); ++kind) {
      if (kControlNames[kind] == full_name) facts->control = static_cast<Control>(kind);
    }
    if (facts->control == Control::none) {
      facts->handle = find_handle(full_name);
      if (!facts->handle) return nullptr;
    }
    facts->self.facts_ = facts.get();
    found = interned->emplace(full_name, std::move(facts)).first;
  }
  return &found->second->self;
}

Op Op::find(std::string_view name) {
  if (const Op* op = try_find(name)) return *op;
  if (!is_own_namespace(name) && name.find("::") != std::string_view::npos) {
    throw_error(
        ErrorKind::unsupported, "op '", name, "' is in no library that is loaded",
        "\n      A library with ops of your own is loaded by --op-library FILE, its ops are allowed by --allow-op");
  }
  const std::string nearest = find_nearest_op(std::string(name));
  throw_error(ErrorKind::unsupported, "op '", name, "' is unknown to this build of PyTorch's libraries",
              nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
}

Op Op::control(Control kind) {
  const Op* op = try_find(kControlNames.at(static_cast<size_t>(kind)));
  LISSOME_CHECK(op != nullptr, "control kind ", static_cast<int>(kind));
  return *op;
}

const std::string& Op::name() const {
  static const std::string kNone = "none";
  return facts_ == nullptr ? kNone : facts_->name;
}

Control Op::control() const { return facts_ == nullptr ? Control::none : facts_->control; }

const c10::OperatorHandle& Op::handle() const {
  LISSOME_CHECK(facts_ != nullptr && facts_->handle.has_value(), name(), " is not in the dispatcher");
  return *facts_->handle;
}

const c10::FunctionSchema& Op::schema() const { return handle().schema(); }

int Op::argument_index(std::string_view argument) const {
  if (!has_schema()) return -1;
  const auto& arguments = schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == argument) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace lissome
