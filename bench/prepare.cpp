// Makes the models that the comparison with the peers runs, one for each precision, without the search of
// `lissome optimize`: that takes minutes a model, because it proves each step, where the comparison proves the result.
//   lissome_bench_prepare MODEL.pt2 CALIBRATION.npz THREADS FOLDER [PRECISION...]
// FOLDER gets f32.lissome, bf16.lissome and int8.lissome and prepared.json, which says how each was made, and of each
// file the bytes of the weights that it was made of (of int8 ones with their rows' sums), of forms that timing chose
// though they are larger, and of the arena of one call. bf16 and int8 are left out where this processor or the model
// has no use for them, or where precisions are named and they are not among these. Of the kinds of int8 the fastest is
// kept that loses no more on rows that did not calibrate it than `lissome optimize` would allow.
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lissome/compare.h"
#include "lissome/data.h"
#include "lissome/lower.h"
#include "lissome/pass.h"
#include "lissome/program.h"
#include "lissome/tune.h"

namespace {

using namespace lissome;  // NOLINT: a program on the faces

Json describe(const PrecisionForm& form) {
  return {{"how", form.how}, {"error", form.error.value_or(0)}, {"seconds", form.seconds}};
}

// Depthwise windows and biases in bf16 are read as f32.
bool is_widened(const Weight& weight, const Plan& plan) {
  const auto packs = [&](const PlanArray& array) {
    return array.array.dtype == Dtype::f32 && array.name.starts_with(weight.name + ".");
  };
  return weight.tensor.scalar_type() == at::kBFloat16 && std::ranges::any_of(plan.arrays, packs);
}

// In the type that the steps read, which is the program's but for what they widen; tied ones once.
int64_t count_weight_bytes(const Program& program, const Plan& plan) {
  std::map<const void*, int64_t> bytes;
  for (const Weight& weight : program.weights) {
    int64_t& most = bytes[weight.tensor.const_data_ptr()];
    const int64_t widened = is_widened(weight, plan) ? 2 : 1;
    most = std::max(most, widened * static_cast<int64_t>(weight.tensor.nbytes()));
  }
  int64_t all = 0;
  for (const auto& [address, size] : bytes) all += size;
  return all;
}

// An int8 weight is read with the sum of each of its rows, which the zero point of the inputs is multiplied with.
int64_t count_sum_bytes(const Plan& plan) {
  int64_t all = 0;
  for (const PlanArray& array : plan.arrays) all += array.name.ends_with(".sums") ? array.array.bytes() : 0;
  return all;
}

Json save(const PrecisionForm& form, int threads, const std::string& path) {
  save_prepared(*form.program, *form.plan, path);
  int64_t larger = 0;
  for (const LargerForm& weight : list_larger_forms(*form.plan)) larger += weight.bytes - weight.plain_bytes;
  Json record = describe(form);
  record["weight_bytes"] = count_weight_bytes(*form.program, *form.plan) + count_sum_bytes(*form.plan);
  record["larger_form_bytes"] = larger;
  record["arena_bytes"] = Session(form.plan, SessionOptions{.threads = threads}).memory().arena;
  record["file_bytes"] = std::filesystem::file_size(path);
  return record;
}

// What an earlier call made of other precisions stays in the record.
Json read_record(const std::string& path) {
  std::ifstream file(path);
  return file ? Json::parse(file) : Json();
}

void make_int8(PrecisionMaker& maker, int threads, const std::string& folder, Json& record) {
  std::vector<PrecisionForm> forms;
  try {
    forms = maker.make_int8();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return static_cast<void>(std::fprintf(stderr, "int8 is left out: %s\n", error.what()));
  }
  record["int8"] = save(forms.front(), threads, folder + "/int8.lissome");
  for (const PrecisionForm& form : forms) record["int8"]["tried"].push_back(describe(form));
}

void make_models(const std::string& model, const std::string& data, int threads, const std::string& folder,
                 const std::set<std::string>& precisions) {
  const auto wants = [&](const char* precision) { return precisions.empty() || precisions.contains(precision); };
  const auto program = std::make_shared<const Program>(prepare_inference(import_pt2(model)));
  const Dataset rows = fit_dataset(load_dataset(data), describe_inputs(*program));
  LowerOptions lowering;
  lowering.threads = threads;
  PrecisionMaker maker(program, &rows, lowering);
  const std::string path = folder + "/prepared.json";
  Json record = read_record(path);
  record["f32"] = save(maker.make_f32(), threads, folder + "/f32.lissome");
  if (wants("bf16") && has(Feature::avx512_bf16))
    record["bf16"] = save(maker.make_bf16(), threads, folder + "/bf16.lissome");
  if (wants("int8")) make_int8(maker, threads, folder, record);
  write_file(path, record.dump(2) + "\n");
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 5) {
    std::fprintf(stderr, "usage: lissome_bench_prepare MODEL.pt2 CALIBRATION.npz THREADS FOLDER [PRECISION...]\n");
    return 2;
  }
  try {
    make_models(arguments[1], arguments[2], std::stoi(arguments[3]), arguments[4],
                {arguments + 5, arguments + argument_count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
