// The file to which some plans move values that wait for long, and from which they come back.
#pragma once

#include <optional>
#include <string>

#include "lissome/runtime/memory/unnamed_file.h"
#include "lissome/runtime/plan/plan.h"
#include "lissome/runtime/session/binding.h"
#include "lissome/runtime/session/run/run_memory.h"

namespace lissome {

class TransferFile {
 public:
  // Makes a file in `folder` if the plan needs one. Throws invalid_input for an empty folder then, unsupported under a
  // limit on memory (`is_limited`), and the errors of UnnamedFile.
  TransferFile(const Plan& plan, const std::string& folder, bool is_limited);

  // Takes the space for the transfers of a binding. Throws io.
  void reserve(const Binding& binding);
  // Makes the transfer at this position among those of the binding, and starts to read the next one ahead if it comes
  // back. Throws io.
  void move(const Binding& binding, size_t position, const RunMemory& memory) const;

 private:
  std::optional<UnnamedFile> file_;
};

}  // namespace lissome
