// Numbers of several recordings as one argument: a literal where all agree, else a value that nodes compute from sizes.
// For convert_recording.cpp.
#pragma once

#include <deque>
#include <map>

#include "lissome/program/program.h"
#include "lissome/program/shape/fit_sizes.h"

namespace lissome {

class NumberMerger {
 public:
  // `sizes` of the named dimensions in each recording, in order.
  NumberMerger(Program& program, std::vector<DimensionBindings> sizes);

  // That the value has this size, in each recording, at `position`; inputs' named dimensions first.
  void add_size(ValueId tensor, int64_t position, const std::vector<int64_t>& seen);
  // Throws unsupported when nothing simple explains the numbers.
  Argument merge_integers(const std::vector<int64_t>& numbers);
  Argument merge_doubles(const std::vector<double>& numbers);
  // An expression over the named dimensions alone.
  std::optional<Dimension> find_dimension(const std::vector<int64_t>& numbers);

 private:
  struct Carrier {
    ValueId tensor = ValueId::none;
    int64_t position = 0;
  };

  std::vector<SizeSample> make_samples(const std::vector<int64_t>& numbers, bool with_tensors) const;
  Argument compute(const Dimension& expression);
  ValueId add_number(std::string_view op, ArgumentList arguments, ValueKind kind);

  Program& program_;
  std::vector<DimensionBindings> sizes_;
  std::map<std::string, Carrier, std::less<>> carriers_;  // where a name's size is read
  std::deque<std::pair<std::string, std::vector<int64_t>>>
      tensors_;  // sizes of tensors that no dimension is, newest last
  std::map<std::vector<int64_t>, std::optional<Dimension>> dimensions_;
  std::map<std::vector<int64_t>, Argument> merged_;
  std::map<std::string, ValueId> computed_;  // by expression
};

}  // namespace lissome
