// See program_file.h.
#include "lissome/cli/program_file.h"

#include "lissome/cli/model.h"
#include "lissome/pass.h"

namespace lissome {

Program open_program(const std::string& path) {
  const ModelKind kind = detect_model_kind(path);
  if (kind == ModelKind::pt2) return import_pt2(path);
  if (kind == ModelKind::lissome) return load_program(path);
  refuse_model_kind(path, kind);
}

std::vector<std::string> describe_eval_form(const Program& original) {
  std::vector<std::string> notes;
  if (original.training)
    notes.emplace_back(
        "the model is in train form (with dropout or batch statistics), so it is converted to its eval form: dropout "
        "is left out, and running statistics are used");
  if (original.writes.empty()) return notes;
  Program eval = original;
  convert_to_inference(eval);
  if (eval.writes.empty()) return notes;
  notes.push_back("each call updates the state of the result: " + join_few(list_written_names(eval), 3) +
                  ". Where the module does so in train mode alone, as a spectral norm does, export it in eval mode");
  return notes;
}

}  // namespace lissome
