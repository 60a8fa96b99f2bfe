#include "lissome/program/import/detect.h"

#include <doctest/doctest.h>

#include "lissome/base.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

std::string write_zip(const TemporaryFolder& folder, const std::vector<std::pair<std::string, std::string>>& members) {
  const std::string path = folder.file("archive");
  ZipWriter writer(path);
  for (const auto& [name, text] : members) writer.add(name, text);
  writer.commit();
  return path;
}

}  // namespace

TEST_CASE("archives are told apart by the names of their members") {
  const TemporaryFolder folder;
  const auto detect = [&](const std::vector<std::pair<std::string, std::string>>& members) {
    return detect_model_kind(write_zip(folder, members));
  };
  CHECK(detect({{"m/archive_format", "pt2"}, {"m/models/model.json", "{}"}}) == ModelKind::pt2);
  CHECK(detect({{"m/archive_format", "pt2"}, {"m/data/aotinductor/m/a.so", ""}}) == ModelKind::aotinductor);
  CHECK(detect({{"serialized_exported_program.json", "{}"}}) == ModelKind::old_pt2);
  CHECK(detect({{"m/data.pkl", "\x80\x02}q"}, {"m/code/m.py", ""}}) == ModelKind::torchscript);
  CHECK(detect({{"m/data.pkl", "\x80\x02}q"}}) == ModelKind::state_dict);
  CHECK(detect({{"m/data.pkl",
                 "\x80\x02"
                 "ccollections\nOrderedDict\n"}}) == ModelKind::state_dict);
  CHECK(detect({{"m/data.pkl",
                 "\x80\x02"
                 "c__main__\nNet\n"}}) == ModelKind::pickled_module);
  CHECK(detect({{"lissome.json", "{}"}, {"program.txt", ""}}) == ModelKind::lissome);
  CHECK(detect({{"x.npy", ""}}) == ModelKind::numpy);
  CHECK(detect({{"x.txt", ""}}) == ModelKind::zip);
}

TEST_CASE("other files are told apart by their first bytes") {
  const TemporaryFolder folder;
  const auto detect = [&](const std::string& bytes) { return detect_model_kind(folder.write("file", bytes)); };
  CHECK(detect("") == ModelKind::empty);
  CHECK(detect("a text\n") == ModelKind::text);
  CHECK(detect(std::string("\x93NUMPY\x01", 7)) == ModelKind::numpy);
  CHECK(detect(std::string("\x80\x02}q", 4)) == ModelKind::legacy_pickle);
  CHECK(detect(std::string("\x08\x08\x12\x03tst", 7)) == ModelKind::onnx);
  CHECK(detect(std::string("\x02\0\0\0\0\0\0\0{}", 10)) == ModelKind::safetensors);
  CHECK(detect(std::string("\0\1\2\3\4\5\6\7\xff", 9)) == ModelKind::unknown);
  CHECK(detect_model_kind(folder.path()) == ModelKind::directory);
}

TEST_CASE("refusals say what the file is and how to export a model") {
  EXPECT_ERROR(unsupported, refuse_model_kind("weights.pt", ModelKind::state_dict), "weights.pt", "state dict",
               "load_state_dict", "torch.export.save(torch.export.export(");
  EXPECT_ERROR(unsupported, refuse_model_kind("net.onnx", ModelKind::onnx), "ONNX", "torch.export.save(");
  EXPECT_ERROR(invalid_input, refuse_model_kind("a.txt", ModelKind::text), "plain text", "torch.export.save(");
  EXPECT_ERROR(usage, refuse_model_kind("folder", ModelKind::directory), "directory");
}
