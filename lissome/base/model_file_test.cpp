#include "lissome/base/model_file.h"

#include <doctest/doctest.h>

#include <cstring>

#include "lissome/base/version.h"
#include "lissome/base/zip.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

NamedArray make_named(const std::string& name, Dtype dtype, Sizes sizes, uint8_t fill) {
  NamedArray named{name, make_array(dtype, std::move(sizes))};
  std::memset(named.array.storage.get(), fill, static_cast<size_t>(named.array.bytes()));
  return named;
}

ModelFile make_model() {
  ModelFile model;
  model.program = "input %x: f32[2]";
  model.weights = {make_named("fc.weight", Dtype::f32, {4, 3}, 1), make_named("mask", Dtype::boolean, {5}, 1),
                   make_named("empty", Dtype::f32, {0, 2}, 0), make_named("empty2", Dtype::i64, {0}, 0)};
  model.weights.push_back({"tied.weight", model.weights[0].array});
  model.plan = "{\"steps\": []}";
  model.plan_arrays = {make_named("packed", Dtype::u8, {100}, 9), {"fc.weight", model.weights[0].array}};
  model.metadata = "{\"note\": \"\u00fc\"}";
  return model;
}

// A model archive of chosen members, right where nothing else is said.
std::string write_members(const TemporaryFolder& folder, std::vector<std::pair<std::string, std::string>> changes,
                          const std::string& left_out = "") {
  std::vector<std::pair<std::string, std::string>> members = {
      {"lissome.json", R"({"format": "lissome", "version": 1, "written_by": "lissome 0.1.0"})"},
      {"program.txt", "text"},
      {"metadata.json", "{}"},
      {"arrays.json", R"({"weights": [{"name": "w", "dtype": "f32", "sizes": [2], "member": "array/0"}], "plan": []})"},
      {"array/0", "01234567"}};
  ZipWriter zip(folder.file("m.lissome"));
  for (auto& [name, text] : members) {
    if (name == left_out) continue;
    for (auto& change : changes)
      if (change.first == name) text = change.second, change.first.clear();
    zip.add(name, text);
  }
  for (const auto& [name, text] : changes)
    if (!name.empty()) zip.add(name, text);
  zip.commit();
  return folder.file("m.lissome");
}

std::string row(const std::string& name, const std::string& dtype, const std::string& sizes,
                const std::string& member) {
  return R"({"weights": [{"name": ")" + name + R"(", "dtype": ")" + dtype + R"(", "sizes": )" + sizes +
         R"(, "member": ")" + member + R"("}], "plan": []})";
}

}  // namespace

TEST_CASE("a model survives its file, tied weights are written once") {
  const TemporaryFolder folder;
  const ModelFile model = make_model();
  save_model_file(folder.file("a.lissome"), model);
  const ModelFile loaded = load_model_file(folder.file("a.lissome"));
  CHECK(loaded.version == 2);
  CHECK(loaded.written_by == "lissome " + std::string(lissome_version()));
  CHECK(loaded.program == model.program);
  CHECK(loaded.plan == model.plan);
  CHECK(loaded.metadata == model.metadata);
  REQUIRE(loaded.weights.size() == model.weights.size());
  for (size_t i = 0; i < model.weights.size(); ++i) {
    CHECK(loaded.weights[i].name == model.weights[i].name);
    CHECK(loaded.weights[i].array.dtype == model.weights[i].array.dtype);
    CHECK(loaded.weights[i].array.sizes == model.weights[i].array.sizes);
    CHECK(reinterpret_cast<uintptr_t>(loaded.weights[i].array.storage.get()) % 64 == 0);
    CHECK(std::memcmp(loaded.weights[i].array.storage.get(), model.weights[i].array.storage.get(),
                      static_cast<size_t>(model.weights[i].array.bytes())) == 0);
  }
  CHECK(loaded.weights[4].array.storage.get() == loaded.weights[0].array.storage.get());
  CHECK(loaded.plan_arrays[1].array.storage.get() == loaded.weights[0].array.storage.get());
  CHECK(ZipReader::open(folder.file("a.lissome")).members().size() == 5 + 5);
}

TEST_CASE("a model may have no plan, no metadata and no weights, and can be saved over itself") {
  const TemporaryFolder folder;
  ModelFile model;
  model.program = "p";
  save_model_file(folder.file("a.lissome"), model);
  CHECK(load_model_file(folder.file("a.lissome")).plan.empty());
  CHECK(load_model_file(folder.file("a.lissome")).metadata == "{}");
  save_model_file(folder.file("a.lissome"), make_model());
  const ModelFile loaded = load_model_file(folder.file("a.lissome"));
  save_model_file(folder.file("a.lissome"), loaded);
  CHECK(loaded.weights[0].array.data<uint8_t>()[0] == 1);
  CHECK(load_model_file(folder.file("a.lissome")).weights.size() == 5);
}

TEST_CASE("arrays of different length may share storage") {
  const TemporaryFolder folder;
  ModelFile model;
  model.program = "p";
  const NamedArray whole = make_named("whole", Dtype::f32, {8}, 3);
  model.weights = {{"part", {Dtype::f32, {2, 2}, whole.array.storage}}, whole};
  save_model_file(folder.file("a.lissome"), model);
  const ModelFile loaded = load_model_file(folder.file("a.lissome"));
  CHECK(loaded.weights[0].array.storage.get() == loaded.weights[1].array.storage.get());
  CHECK(loaded.weights[0].array.sizes == Sizes{2, 2});
}

TEST_CASE("a model may have a plan and no program") {
  const TemporaryFolder folder;
  ModelFile model = make_model();
  model.program.clear();
  save_model_file(folder.file("a.lissome"), model);
  const ModelFile loaded = load_model_file(folder.file("a.lissome"));
  CHECK(loaded.program.empty());
  CHECK(loaded.plan == model.plan);
  CHECK(ZipReader::open(folder.file("a.lissome")).find("program.txt") == nullptr);
}

TEST_CASE("long texts are deflated, and read as they were") {
  const TemporaryFolder folder;
  ModelFile model = make_model();
  for (int i = 0; i < 5000; ++i) model.program += "%" + std::to_string(i * i) + " = aten::relu(%x)\n";
  save_model_file(folder.file("a.lissome"), model);
  CHECK(count_model_file(model) == std::ssize(folder.read("a.lissome")));
  CHECK(load_model_file(folder.file("a.lissome")).program == model.program);
  CHECK(folder.read("a.lissome").size() < model.program.size() / 2);
}

TEST_CASE("padding is left out of the file and restored") {
  const TemporaryFolder folder;
  ModelFile model = make_model();
  NamedArray padded = make_named("padded", Dtype::f32, {500, 64}, 7);
  for (int row = 0; row < 500; ++row) std::memset(padded.array.data<float>() + row * 64 + 24, 0, 40 * sizeof(float));
  model.plan_arrays.push_back(padded);
  save_model_file(folder.file("a.lissome"), model);
  CHECK(folder.read("a.lissome").size() < 500 * 24 * sizeof(float) + 4096);
  const ModelFile loaded = load_model_file(folder.file("a.lissome"));
  const Array& array = loaded.plan_arrays.back().array;
  REQUIRE(array.sizes == padded.array.sizes);
  CHECK(std::memcmp(array.storage.get(), padded.array.storage.get(), static_cast<size_t>(array.bytes())) == 0);
}

TEST_CASE("broken and hostile models are refused") {
  const TemporaryFolder folder;
  CHECK(load_model_file(write_members(folder, {})).weights.size() == 1);
  const auto refuses = [&](const std::string& member, const std::string& text, const std::string& word) {
    EXPECT_ERROR(invalid_input, load_model_file(write_members(folder, {{member, text}})), "m.lissome", word);
  };
  for (const char* name : {"lissome.json", "program.txt", "metadata.json", "arrays.json", "array/0"})
    EXPECT_ERROR(invalid_input, load_model_file(write_members(folder, {}, name)), "m.lissome", name);
  refuses("lissome.json", "{}", "'format'");
  refuses("lissome.json", R"({"format": "other", "version": 1, "written_by": "x"})", "another format");
  refuses("lissome.json", R"({"format": "lissome", "version": "1", "written_by": "x"})", "'version'");
  refuses("program.txt", "\xff", "UTF-8");
  refuses("extra", "x", "'extra'");
  refuses("array/7", "x", "'array/7'");
  refuses("arrays.json", "{}", "'weights'");
  refuses("arrays.json", R"({"weights": [], "plan": []})", "'array/0'");
  refuses("arrays.json", R"({"weights": [1], "plan": []})", "'name'");
  refuses("arrays.json", row("w", "f5", "[2]", "array/0"), "'f5'");
  refuses("arrays.json", row("w", "f32", "[-2]", "array/0"), "size");
  refuses("arrays.json", row("w", "f32", "[3]", "array/0"), "12");
  refuses("arrays.json", row("w", "f32", "[1]", "array/0"), "use 4");
  refuses("arrays.json", row("w", "f32", "[4611686018427387904, 4]", "array/0"), "overflow");
  refuses("arrays.json", row("w", "f32", "[2]", "program.txt"), "'program.txt'");
  refuses("arrays.json", row("w", "f32", "[2]", "array/1"), "'array/1'");
  refuses("arrays.json", row("w", "bool", "[8]", "array/0"), "bool");
  const auto padded = [&](const std::string& name, const std::string& sizes, const std::string& padding) {
    return R"({"name": ")" + name + R"(", "dtype": "f32", "sizes": )" + sizes +
           R"(, "member": "array/0", "padding": )" + padding + "}";
  };
  const auto one = [&](const std::string& sizes, const std::string& padding) {
    return R"({"weights": [)" + padded("w", sizes, padding) + R"(], "plan": []})";
  };
  CHECK(load_model_file(write_members(folder, {{"arrays.json", one("[4]", "[[4, 4, 2]]")}})).weights.size() == 1);
  refuses("arrays.json", one("[5]", "[[4, 4, 2]]"), "20 bytes");
  refuses("arrays.json", one("[4]", "[[4, 4]]"), "three counts");
  refuses("arrays.json", one("[4]", "[[4, -4, 2]]"), "three counts");
  refuses("arrays.json", one("[4]", R"([["4", 4, 2]])"), "three counts");
  refuses("arrays.json", one("[4]", "7"), "three counts");
  refuses("arrays.json", one("[8]", "[[8, 8, 2]]"), "needs 16");
  refuses("arrays.json", one("[2]", "[[4, 4, 1]]"), "use 4");
  refuses("arrays.json", one("[1000]", "[[8, 3992, 1]]"), "128");
  refuses("arrays.json", one("[4]", "[[4, 9223372036854775807, 2]]"), "make up");
  refuses("arrays.json",
          R"({"weights": [)" + padded("w", "[4]", "[[4, 4, 2]]") + ", " + padded("v", "[4]", "[[4, 4, 2]]") +
              R"(], "plan": []})",
          "another padded array");
  refuses("arrays.json",
          R"({"weights": [{"name": "w", "dtype": "f32", "sizes": [2], "member": "array/0"},)"
          R"({"name": "w", "dtype": "f32", "sizes": [2], "member": "array/0"}], "plan": []})",
          "two arrays");
}

TEST_CASE("a newer format names who wrote it") {
  const TemporaryFolder folder;
  const std::string path =
      write_members(folder, {{"lissome.json", R"({"format": "lissome", "version": 99, "written_by": "lissome 7.0"})"}});
  EXPECT_ERROR(unsupported, load_model_file(path), "version 99", "lissome 7.0", std::string(lissome_version()));
}
