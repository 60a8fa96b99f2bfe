// An op is a dispatcher schema ("aten::add.Tensor"), or one of the few control ops whose bodies are child programs.
// Ops of our own live in namespace `lissome` of the dispatcher and are registered by register_ops().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Complete where they are used: <ATen/core/function_schema.h>, <ATen/core/dispatch/Dispatcher.h>.
namespace c10 {
class OperatorHandle;
struct Argument;
struct FunctionSchema;
}  // namespace c10

namespace lissome {

enum class Control : uint8_t {
  none,
  cond,        // (condition, operands...), bodies: true, false
  while_loop,  // (carried..., additional...), bodies: condition, body; attribute argument 0 = number of carried values
  map,         // body over slices of the first operands; argument 0 = number of mapped values
  scan,        // argument 0 = number of carried values, argument 1 = number of scanned values, 2 = reverse flag
  region,      // a grad-mode, autocast or vmapped region; argument 0 = its mode text ("grad=0", "autocast=cpu,bf16,1",
               // "vmap=error;0,-;0": randomness, batch dimension of each operand and result), body
};

// A handle to interned facts; copy freely, compare by identity. All ops of a process outlive every program.
class Op {
 public:
  Op() = default;
  // "aten::linear", "aten::add.Tensor". Throws unsupported when the dispatcher has no such op.
  static Op find(std::string_view name);
  static const Op* try_find(std::string_view name);  // null when absent
  static Op control(Control kind);

  const std::string& name() const;  // with overload: "aten::add.Tensor"; control ops: "lissome::cond"
  bool is(std::string_view name) const { return this->name() == name; }
  Control control() const;
  bool has_schema() const { return control() == Control::none; }
  const c10::FunctionSchema& schema() const;
  const c10::OperatorHandle& handle() const;
  int argument_index(std::string_view argument) const;  // position in the schema, -1 when absent
  bool operator==(const Op& other) const { return facts_ == other.facts_; }
  explicit operator bool() const { return facts_ != nullptr; }

 private:
  struct Facts;
  const Facts* facts_ = nullptr;
};

// Registers the ops of namespace `lissome` once; called by every entry into the program module.
void register_ops();

}  // namespace lissome
