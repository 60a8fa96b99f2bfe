// model.lissome: programs come back with weights, ties, layouts, child programs and text; hostile files are refused.
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lissome/program.h"
#include "tests/temporary_folder.h"

namespace lissome {
namespace {

Program make_program() {
  return parse_program(
      "dim batch in 1..64\n"
      "training\n"
      "call inputs '[\"x\"]'\n"
      "input %x: f32[batch, 3] as options.x\n"
      "parameter @w: f32[4, 3]\n"
      "parameter @tied: f32[4, 3] tied @w\n"
      "buffer @mean: f32[4]\n"
      "constant @empty: f32[0, 3]\n"
      "%0: f32[batch, 4] = aten::linear(%x, @w, @mean)  # net.py:8 in fc (Linear): \"self.fc(x)\"\n"
      "%1: f32[4] = aten::mean.dim(%0, [0])\n"
      "@mean <- %1\n"
      "return %0 as y, @tied as t");
}

// A file whose pieces are changed before it is written.
std::string write_changed(const TemporaryFolder& folder, const Program& program,
                          const std::function<void(ModelFile&)>& change) {
  ModelFile file = pack_program(program);
  change(file);
  const std::string path = folder.file("changed.lissome");
  save_model_file(path, file);
  return path;
}

void check_refused(const TemporaryFolder& folder, const Program& program, std::string_view mention,
                   const std::function<void(ModelFile&)>& change) {
  const std::string path = write_changed(folder, program, change);
  try {
    load_program(path);
    FAIL_CHECK("accepted, though it should say: " << std::string(mention));
  } catch (const Error& error) {
    CAPTURE(error.message());
    CHECK(exit_code(error.kind()) == 4);
    CHECK(error.message().find(mention) != std::string::npos);
  }
}

TEST_CASE("a program comes back from its file") {
  const TemporaryFolder folder;
  Program program = make_program();
  program.weights[0].tensor.copy_(at::randn({4, 3}));
  program.weights[2].tensor.fill_(2);
  const std::string path = folder.file("a.lissome");
  save_program(program, path);
  const Program loaded = load_program(path);
  CHECK(same_program(loaded, program));
  CHECK(print_program(loaded) == print_program(program));
  for (size_t i = 0; i < program.weights.size(); ++i) {
    CHECK(at::equal(loaded.weights[i].tensor, program.weights[i].tensor));
  }
  CHECK(loaded.weights[0].tensor.storage().data() == loaded.weights[1].tensor.storage().data());
  CHECK(reinterpret_cast<uintptr_t>(loaded.weights[0].tensor.data_ptr()) % 64 == 0);
  CHECK(reinterpret_cast<uintptr_t>(loaded.weights[2].tensor.data_ptr()) % 64 == 0);
}

TEST_CASE("tied weights are written once") {
  const TemporaryFolder folder;
  Program program;
  const at::Tensor big = at::randn({100, 100});
  program.add_weight("a", big, WeightRole::parameter);
  program.add_weight("b", big, WeightRole::parameter);
  program.add_weight("c", big.view({10'000}), WeightRole::parameter);
  save_program(program, folder.file("tied.lissome"));
  CHECK(std::filesystem::file_size(folder.file("tied.lissome")) < 50'000);
  const Program loaded = load_program(folder.file("tied.lissome"));
  CHECK(loaded.weights[0].tensor.is_alias_of(loaded.weights[2].tensor));
  CHECK(at::equal(loaded.weights[2].tensor, big.view({10'000})));
}

TEST_CASE("training in place leaves the file alone") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.lissome");
  Program program = make_program();
  program.weights[0].tensor.fill_(1);
  save_program(program, path);
  Program loaded = load_program(path);
  loaded.weights[0].tensor.fill_(7);
  CHECK(at::equal(loaded.weights[1].tensor, loaded.weights[0].tensor));  // tied: both see it
  CHECK(at::equal(load_program(path).weights[0].tensor, at::ones({4, 3})));
}

TEST_CASE("weights outlive the program and the file") {
  at::Tensor kept;
  {
    const TemporaryFolder folder;
    Program program = make_program();
    program.weights[0].tensor.fill_(3);
    save_program(program, folder.file("a.lissome"));
    kept = load_program(folder.file("a.lissome")).weights[0].tensor;
  }
  CHECK(kept.sum().item<float>() == doctest::Approx(36));
}

TEST_CASE("views of one storage stay views") {
  const TemporaryFolder folder;
  const at::Tensor all = at::arange(100, at::kFloat);
  Program program;
  program.add_weight("q", all.slice(0, 20, 32).view({4, 3}), WeightRole::parameter);
  program.add_weight("k", all.slice(0, 32, 44).view({3, 4}).t(), WeightRole::parameter);
  program.add_weight("both", all.slice(0, 20, 44), WeightRole::parameter);
  program.add_weight("alone", at::arange(12, at::kDouble).view({3, 4}).t(), WeightRole::buffer);
  save_program(program, folder.file("views.lissome"));
  Program loaded = load_program(folder.file("views.lissome"));
  CHECK(same_program(loaded, program));
  for (size_t i = 0; i < program.weights.size(); ++i) {
    CHECK(at::equal(loaded.weights[i].tensor, program.weights[i].tensor));
  }
  loaded.weights[2].tensor.fill_(0);
  CHECK(loaded.weights[0].tensor.sum().item<float>() == 0);
  CHECK(loaded.weights[1].tensor.sum().item<float>() == 0);
}

TEST_CASE("the order in memory of dense weights is kept") {
  const TemporaryFolder folder;
  const at::Tensor images = at::randn({4, 3, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const Program program =
      parse_program("parameter @w: f32[4, 3, 5, 5] strides [75, 1, 15, 3]\nreturn @w", {{"w", images}});
  const std::string path = folder.file("a.lissome");
  save_program(program, path);
  const at::Tensor loaded = load_program(path).weights[0].tensor;
  CHECK(at::equal(loaded, images));
  CHECK(loaded.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(reinterpret_cast<uintptr_t>(loaded.data_ptr()) % 64 == 0);
}

TEST_CASE("every dtype and sparse layout is saved") {
  const TemporaryFolder folder;
  Program program;
  for (int dtype = 0; dtype <= static_cast<int>(Dtype::u64); ++dtype) {
    const at::ScalarType type = scalar_type_of(static_cast<Dtype>(dtype));
    program.add_weight("w" + std::to_string(dtype), at::arange(2).to(type), WeightRole::constant);
  }
  const at::Tensor dense = at::arange(16, at::kFloat).view({4, 4}).tril(-1);
  program.add_weight("coo", dense.to_sparse(), WeightRole::constant);
  program.add_weight("csr", dense.to_sparse_csr(), WeightRole::constant);
  program.add_weight("csc", dense.to_sparse_csc(), WeightRole::constant);
  program.add_weight("bsr", dense.to_sparse_bsr({2, 2}), WeightRole::constant);
  program.add_weight("conjugate", at::complex(at::ones({2}), at::ones({2})).conj(), WeightRole::constant);
  save_program(program, folder.file("all.lissome"));
  const Program loaded = load_program(folder.file("all.lissome"));
  CHECK(same_program(loaded, program));
  for (size_t i = 0; i < program.weights.size(); ++i) {
    const at::Tensor& before = program.weights[i].tensor;
    const at::Tensor& after = loaded.weights[i].tensor;
    CAPTURE(program.weights[i].name);
    CHECK(after.layout() == before.layout());
    if (before.layout() != at::kStrided) {
      CHECK(at::equal(after.to_dense(), before.to_dense()));
    } else {
      CHECK(at::equal(after.to(at::kComplexDouble), before.to(at::kComplexDouble)));
    }
  }
  CHECK(loaded.weights[16].tensor.is_coalesced());
}

TEST_CASE("weights of child programs have names of their own") {
  const TemporaryFolder folder;
  Program program = parse_program(
      "parameter @w: f32[2]\n"
      "%0: f32[2] = lissome::cond(%p: bool[], [%x: f32[2]]) {\n"
      "  input %a: f32[2]\n  constant @w: f32[2]\n  %0: f32[2] = aten::mul.Tensor(%a, @w)\n  return %0\n} {\n"
      "  input %a: f32[2]\n  constant @w: f32[2]\n  %0: f32[2] = aten::add.Tensor(%a, @w)\n  return %0\n}\n"
      "return %0");
  program.weights[0].tensor.fill_(1);
  program.nodes[0].bodies[0]->weights[0].tensor.fill_(2);
  program.nodes[0].bodies[1]->weights[0].tensor.fill_(3);
  save_program(program, folder.file("a.lissome"));
  const Program loaded = load_program(folder.file("a.lissome"));
  CHECK(same_program(loaded, program));
  CHECK(loaded.weights[0].tensor[0].item<float>() == 1);
  CHECK(loaded.nodes[0].bodies[0]->weights[0].tensor[0].item<float>() == 2);
  CHECK(loaded.nodes[0].bodies[1]->weights[0].tensor[0].item<float>() == 3);
}

TEST_CASE("hostile files are refused") {
  const TemporaryFolder folder;
  const Program program = make_program();
  check_refused(folder, program, "no tensor in the file", [](ModelFile& file) {
    file.weights.pop_back();
    file.weights.erase(file.weights.begin());
  });
  check_refused(folder, program, "line 1", [](ModelFile& file) { file.program = "what is this"; });
  check_refused(folder, program, "is declared as", [](ModelFile& file) { file.weights[0].array.sizes = {3, 4}; });
  check_refused(folder, program, "is declared as", [](ModelFile& file) { file.weights[0].array.dtype = Dtype::i32; });
  check_refused(folder, program, "the program names",
                [](ModelFile& file) { file.weights.push_back({"more", make_array(Dtype::f32, {2})}); });
  check_refused(folder, program, "no object", [](ModelFile& file) { file.metadata = "[]"; });
  check_refused(folder, program, "metadata", [](ModelFile& file) { file.metadata = "{\"program\": 3}"; });
  check_refused(folder, program, "metadata",
                [](ModelFile& file) { file.metadata = "{\"program\": {\"views\": [1], \"sparse\": []}}"; });
  check_refused(folder, program, "not on the list of ops", [](ModelFile& file) {
    file.program += "";
    file.weights.clear();
    file.program = "%0 = aten::from_file(\"/etc/passwd\", true, 16)\nreturn %0";
  });
  check_refused(folder, program, "no_such_op",
                [](ModelFile& file) { file.program = "%0 = aten::no_such_op(%x: f32[2])"; });
}

TEST_CASE("hostile views and sparse weights are refused") {
  const TemporaryFolder folder;
  const at::Tensor all = at::arange(24, at::kFloat);
  Program program;
  program.add_weight("q", all.slice(0, 0, 12), WeightRole::parameter);
  program.add_weight("k", all.slice(0, 12, 24), WeightRole::parameter);
  const auto change_row = [&](const char* list, const char* key, const Json& value) {
    return [=](ModelFile& file) {
      Json metadata = Json::parse(file.metadata);
      metadata["program"][list][1][key] = value;
      file.metadata = print_json(metadata);
    };
  };
  check_refused(folder, program, "beyond its storage", change_row("views", "offset", 13));
  check_refused(folder, program, "beyond its storage", change_row("views", "strides", {2}));
  check_refused(folder, program, "beyond its storage", change_row("views", "strides", {INT64_MAX}));
  check_refused(folder, program, "no count", change_row("views", "offset", -1));
  check_refused(folder, program, "no count", change_row("views", "sizes", {-12}));
  check_refused(folder, program, "no known dtype", change_row("views", "dtype", "f33"));
  check_refused(folder, program, "is missing", change_row("views", "array", "other"));
  check_refused(folder, program, "is there twice", change_row("views", "name", "q"));
  check_refused(folder, program, "beyond its storage", change_row("views", "dtype", "f64"));

  Program sparse;
  const at::Tensor dense = at::ones({4, 4}).tril(-1);
  sparse.add_weight("coo", dense.to_sparse(), WeightRole::constant);
  sparse.add_weight("csr", dense.to_sparse_csr(), WeightRole::constant);
  const auto spoil = [](const std::string& name, int64_t at, int64_t value) {
    return [=](ModelFile& file) {
      for (NamedArray& named : file.weights) {
        if (named.name != name) continue;
        named.array = copy_array(named.array.view());
        named.array.data<int64_t>()[at] = value;
      }
    };
  };
  check_refused(folder, sparse, "", spoil("coo:0", 0, 4));
  check_refused(folder, sparse, "", spoil("coo:0", 3, -1));
  check_refused(folder, sparse, "", spoil("csr:0", 4, 100));
  check_refused(folder, sparse, "", spoil("csr:1", 0, 4));
  check_refused(folder, sparse, "layout", change_row("sparse", "layout", "strided"));
  check_refused(folder, sparse, "its arrays", change_row("sparse", "arrays", {"csr:0"}));
}

TEST_CASE("other files are named") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(load_program(folder.file("absent.lissome")), Error);
  write_file(folder.file("text.lissome"), "hello\n");
  CHECK_THROWS_WITH_AS(load_program(folder.file("text.lissome")), doctest::Contains("plain text"), Error);
}

}  // namespace
}  // namespace lissome
