// The untyped tree of program text: what stands where, before any op, type or name is looked up. Torch-free, so that it
// can be fuzzed alone; parse.cpp gives it meaning. The grammar is drawn at the top of print.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lissome {

struct TextPlace {
  int line = 1;
  int column = 1;
};

// f32[batch, 64], f32[...] (sizes unknown), int, int[batch], list
struct TextType {
  std::string word;
  bool has_brackets = false;
  bool sized = false;
  std::vector<std::string> sizes;  // texts of dimension expressions
  TextPlace place;
};

struct TextArgument {
  enum class Kind : uint8_t { value, weight, integer, floating, string, word, complex, device, list };
  Kind kind = Kind::word;
  std::string text;  // name, string, word or device
  int64_t integer = 0;
  double floating = 0, imaginary = 0;
  std::vector<TextArgument> items;
  std::string keyword;           // name= before it; empty when positional
  std::optional<TextType> type;  // of a value or weight declared where it is first used
  TextPlace place;
};

struct TextDimension {
  std::string name;
  std::optional<int64_t> minimum, maximum;
  TextPlace place;
};

struct TextRequirement {
  std::string text;
  TextPlace place;
};

struct TextInput {
  std::string value;
  std::optional<std::string> name;  // else the value's
  TextType type;
  TextPlace place;
};

struct TextWeight {
  std::string role;  // parameter, buffer, constant
  std::string name;
  TextType type;
  bool frozen = false;     // a parameter that does not train
  bool temporary = false;  // a buffer that no state dict holds
  std::string layout;      // of a sparse weight, else empty
  std::optional<std::vector<int64_t>> strides;
  std::string tied;                  // name of the weight whose storage it shares
  int64_t offset = 0;                // its first element in that storage
  std::optional<TextArgument> fill;  // `= 0.5` or `= [1, 2]`: what its elements are, in tests
  TextPlace place;
};

struct TextOrigin {
  std::string source, code, module, module_type;
};

struct TextResult {
  std::string name;  // empty: the result is not kept (_)
  std::optional<TextType> type;
  TextPlace place;
};

struct TextProgram;

struct TextNode {
  std::string op;
  std::vector<TextResult> results;
  std::vector<TextArgument> arguments;
  std::vector<TextProgram> bodies;
  std::optional<TextOrigin> origin;
  TextPlace place;
};

struct TextWrite {
  TextArgument target, value;
};

struct TextOutput {
  TextArgument value;
  std::optional<std::string> name;  // else the usual one
};

struct TextProgram {
  std::vector<TextDimension> dimensions;
  std::vector<TextRequirement> requirements;
  std::vector<TextInput> inputs;
  std::vector<TextWeight> weights;
  std::vector<TextNode> nodes;
  std::vector<TextWrite> writes;
  std::vector<TextOutput> outputs;
  bool has_return = false;
  bool training = false;
  std::string call_inputs, call_outputs;
};

// Throws invalid_input with line and column. Bounded: 64 nested lists, 32 nested programs, 1 GiB of text.
TextProgram read_program_text(std::string_view text);

}  // namespace lissome
