// See program_file.h.
#include "lissome/cli/program_file.h"

#include "lissome/cli/model.h"

namespace lissome {

Program open_program(const std::string& path) {
  const ModelKind kind = detect_model_kind(path);
  if (kind == ModelKind::pt2) return import_pt2(path);
  if (kind == ModelKind::lissome) return load_program(path);
  refuse_model_kind(path, kind);
}

}  // namespace lissome
