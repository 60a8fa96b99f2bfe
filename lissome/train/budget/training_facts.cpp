#include "lissome/train/budget/training_facts.h"

#include <charconv>
#include <cstring>

#include "lissome/train/step/batches.h"

namespace lissome {
namespace {

// The shortest text that reads back as the same number.
std::string print_number(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  LISSOME_CHECK(error == std::errc());
  return {text, end};
}

std::string print_number(const std::optional<double>& number) { return number ? print_number(*number) : "default"; }

std::string print_hash(uint64_t hash) {
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

// FNV-1a, 64 bits. It distinguishes programs and data, and does not protect against forgery.
constexpr uint64_t kFirstHash = 14695981039346656037ULL, kHashFactor = 1099511628211ULL;

std::string hash_text(const std::string& text) {
  uint64_t hash = kFirstHash;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kHashFactor;
  return print_hash(hash);
}

// FNV-1a over words of 8 bytes, and the rest in one.
uint64_t hash_bytes(uint64_t hash, const void* data, size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  for (size_t first = 0; first < bytes; first += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, from + first, std::min(sizeof word, bytes - first));
    hash = (hash ^ word) * kHashFactor;
  }
  return hash;
}

using Fields = std::vector<std::pair<const char*, double>>;

std::string print_fields(const char* name, const Fields& fields) {
  std::string text = name;
  for (const auto& [field, number] : fields) text += std::string(" ") + field + "=" + print_number(number);
  return text;
}

Fields list_adam_fields(const auto& adam) {
  return {{"lr", adam.lr},
          {"beta1", adam.beta1},
          {"beta2", adam.beta2},
          {"eps", adam.eps},
          {"weight_decay", adam.weight_decay},
          {"byte_states", adam.states_8bit ? 1 : 0}};  // snapshots keep the old name
}
std::string print_kind(const AdamW& own) { return print_fields("adamw", list_adam_fields(own)); }
std::string print_kind(const Adam& own) { return print_fields("adam", list_adam_fields(own)); }
std::string print_kind(const Sgd& own) {
  return print_fields("sgd", {{"lr", own.lr},
                              {"momentum", own.momentum},
                              {"dampening", own.dampening},
                              {"weight_decay", own.weight_decay},
                              {"nesterov", own.nesterov ? 1 : 0}});
}
std::string print_kind(const Lion& own) {
  return print_fields("lion",
                      {{"lr", own.lr}, {"beta1", own.beta1}, {"beta2", own.beta2}, {"weight_decay", own.weight_decay}});
}
std::string print_kind(const Adafactor& own) {
  return print_fields("adafactor", {{"lr", own.lr},
                                    {"beta2_decay", own.beta2_decay},
                                    {"eps1", own.eps1},
                                    {"eps2", own.eps2},
                                    {"d", own.d},
                                    {"weight_decay", own.weight_decay}});
}

std::string print_loss(const TrainOptions& options) {
  if (options.loss_function) return "a function";
  const LossOptions& loss = options.loss;
  std::string text = print_fields("loss", {{"kind", static_cast<double>(loss.kind)},
                                           {"label_smoothing", loss.label_smoothing},
                                           {"ignored_label", static_cast<double>(loss.ignored_label)},
                                           {"delta", loss.delta}});
  if (!loss.output.empty()) text += " output=" + loss.output;
  for (const double weight : loss.class_weights) text += " " + print_number(weight);
  return text;
}

std::string print_groups(const std::vector<ParameterGroup>& groups) {
  std::string text;
  for (const ParameterGroup& group : groups) {
    text += group.pattern + ": " +
            (group.frozen ? "frozen" : print_number(group.lr_factor) + "x, decay " + print_number(group.weight_decay)) +
            "; ";
  }
  return text;
}

std::string print_data(const Dataset& data, const BatchOptions& options) {
  std::string text = std::to_string(count_samples(data, options)) + " samples";
  for (const DataColumn& column : data.columns) text += ", " + column.name + format_sizes(column.sample_sizes);
  return text;
}

// Of samples that are spread over the data.
std::string hash_samples(const Dataset& data, size_t inputs) {
  constexpr int64_t kMost = 64;
  uint64_t hash = kFirstHash;
  const int64_t all = data.samples(), count = std::min(all, kMost);
  for (int64_t i = 0; i < count; ++i) {
    for (const at::Tensor& part : take_inputs(data, count > 1 ? i * (all - 1) / (count - 1) : 0, 1, inputs))
      hash = hash_bytes(hash, part.const_data_ptr(), part.nbytes());
  }
  return print_hash(hash);
}

std::string print_early_stop(const std::optional<EarlyStopOptions>& options) {
  if (!options) return "none";
  return print_fields("early_stop", {{"patience", static_cast<double>(options->patience)},
                                     {"min_delta", options->min_delta},
                                     {"higher", options->better == Better::higher ? 1 : 0}});
}

}  // namespace

std::string hash_weights(const Program& model) {
  uint64_t hash = kFirstHash;
  for (const Weight& weight : model.weights) {
    const at::Tensor dense = weight.tensor.contiguous();
    hash = hash_bytes(hash, dense.const_data_ptr(), dense.nbytes());
  }
  return print_hash(hash);
}

std::string hash_snapshot(const Snapshot& snapshot) {
  uint64_t hash = kFirstHash;
  for (const auto& [name, tensor] : snapshot.entries) {
    const at::Tensor dense = tensor.contiguous();
    hash = hash_bytes(hash_bytes(hash, name.data(), name.size()), dense.const_data_ptr(), dense.nbytes());
  }
  return print_hash(hash);
}

TrainingFacts list_facts(const Program& model, const Dataset& data, const Dataset* validation,
                         const TrainOptions& options) {
  const size_t inputs = model.inputs.size();
  const auto hash_data = [&](const Dataset& of) { return hash_samples(of, inputs + (of.labels ? 1 : 0)); };
  // A source may give other values each time.
  const std::string values = options.batches.source ? "of a source" : hash_data(data);
  // Otherwise validation data only inform, and others may be given on the way.
  const bool judges =
      validation != nullptr && (options.early_stop || options.schedule.find("plateau") != std::string::npos);
  PrintOptions without_origins;
  without_origins.origins = false;
  return {{"model", hash_text(print_program(model, without_origins))},
          {"data", print_data(data, options.batches)},
          {"values of the data", values},
          {"values of the validation data", judges ? hash_data(*validation) : "not compared"},
          {"loss", print_loss(options)},
          {"optimizer", std::visit([](const auto& own) { return print_kind(own); }, options.optimizer)},
          {"groups", print_groups(options.groups)},
          {"learning rate", print_number(options.learning_rate)},
          {"schedule", options.schedule},
          {"batch", std::to_string(options.batch)},
          {"accumulate", std::to_string(options.accumulate)},
          {"precision", std::string(dtype_name(options.precision.value()))},
          {"lossy activations", options.lossy_activations ? "allowed" : "no"},
          {"transforms", options.batches.transforms.empty() ? "none" : options.batches.transforms},
          {"clip norm", print_number(options.clip_norm)},
          {"moving average", options.average_decay ? print_number(*options.average_decay) : "none"},
          {"early stop", print_early_stop(options.early_stop)},
          {"seed", std::to_string(options.seed)}};
}

}  // namespace lissome
