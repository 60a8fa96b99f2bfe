// See case_program.h.
#include "tests/cases/case_program.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <regex>

namespace lissome {
namespace {

struct Declared {
  std::string name, dtype;
  std::vector<int64_t> sizes;
};

// What the text declares with these words.
std::vector<Declared> list_declared(const std::string& text, const std::string& words) {
  std::map<std::string, int64_t> dimensions;
  const std::regex dimension(R"(dim ([a-z]+) in ([0-9]+)\.\.)"),
      line("(?:" + words + R"()([a-z0-9_]+): ([a-z0-9]+)\[([^\]]*)\])"), size("[a-z0-9]+");
  for (std::sregex_iterator found(text.begin(), text.end(), dimension), end; found != end; ++found)
    dimensions[(*found)[1].str()] = std::stoll((*found)[2].str());
  std::vector<Declared> all;
  for (std::sregex_iterator found(text.begin(), text.end(), line), end; found != end; ++found) {
    Declared declared{(*found)[1].str(), (*found)[2].str(), {}};
    const std::string sizes = (*found)[3].str();
    for (std::sregex_iterator part(sizes.begin(), sizes.end(), size); part != end; ++part) {
      const auto named = dimensions.find(part->str());
      declared.sizes.push_back(named != dimensions.end() ? named->second : std::stoll(part->str()));
    }
    all.push_back(std::move(declared));
  }
  return all;
}

// Scales of int8 and variances, by the names that cases give them: @s, @s1, @scale, @var.
bool stays_positive(const std::string& name) {
  static const std::regex names("s[0-9]*|scale.*|var.*");
  return std::regex_match(name, names);
}

void place_special(at::Tensor& tensor) {
  constexpr float kSpecial[] = {NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 1e3F, -1e3F, 1e-30F};
  float* numbers = tensor.data_ptr<float>();
  const at::Tensor where = at::randint(0, 64, tensor.sizes(), at::kLong);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const int64_t which = where.data_ptr<int64_t>()[i];
    if (which < static_cast<int64_t>(std::size(kSpecial))) numbers[i] = kSpecial[which];
  }
}

at::Tensor draw_floats(const Declared& declared, CaseNumbers numbers) {
  if (numbers == CaseNumbers::positive || stays_positive(declared.name)) return at::rand(declared.sizes).add(0.1);
  at::Tensor drawn = at::randn(declared.sizes);
  if (numbers == CaseNumbers::special) place_special(drawn);
  return drawn;
}

at::Tensor draw(const Declared& declared, CaseNumbers numbers) {
  if (declared.dtype == "i64") return at::randint(0, 4, declared.sizes, at::kLong);
  if (declared.dtype == "i32") return at::randint(0, 4, declared.sizes, at::kInt);
  if (declared.dtype == "i8") return at::randint(-127, 128, declared.sizes, at::kChar);
  if (declared.dtype == "u8") return at::randint(0, 256, declared.sizes, at::kByte);
  if (declared.dtype == "bool") return at::randint(0, 2, declared.sizes, at::kBool);
  if (declared.dtype == "bf16") return draw_floats(declared, numbers).to(at::kBFloat16);
  if (declared.dtype == "f32") return draw_floats(declared, numbers);
  if (declared.dtype == "f64") return draw_floats(declared, numbers).to(at::kDouble);
  throw_error(ErrorKind::usage, "a case declares ", declared.dtype);
}

std::vector<ForcedKernel> read_forced(const std::string& text) {
  std::vector<ForcedKernel> forced;
  const std::regex line("# force (\\S+) (\\S+)");
  for (std::sregex_iterator found(text.begin(), text.end(), line), end; found != end; ++found)
    forced.push_back({(*found)[1].str(), (*found)[2].str()});
  return forced;
}

}  // namespace

std::vector<CaseFile> read_case_files(const std::string& folder) {
  constexpr size_t kLargestText = 1 << 20;
  std::vector<CaseFile> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".txt")
      files.push_back({entry.path().stem().string(), read_text_file(entry.path().string(), kLargestText)});
  }
  std::ranges::sort(files, {}, &CaseFile::name);
  return files;
}

CaseProgram read_case_program(const std::string& text, CaseNumbers numbers) {
  // Weights have no special numbers: an infinite weight says nothing about a kernel that an infinite input does not.
  const CaseNumbers plain = numbers == CaseNumbers::special ? CaseNumbers::normal : numbers;
  std::vector<std::pair<std::string, at::Tensor>> weights;
  for (const Declared& declared : list_declared(text, "parameter @|buffer @"))
    weights.emplace_back(declared.name, draw(declared, plain));
  CaseProgram made{parse_program(text, weights), {}, {}, read_forced(text)};
  for (const Declared& declared : list_declared(text, "input %")) {
    made.names.push_back(declared.name);
    made.inputs.emplace_back(draw(declared, numbers));
  }
  return made;
}

}  // namespace lissome
