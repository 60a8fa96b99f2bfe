// Opens a `.pt2`: finds its folder, checks the marks that say what it is, and reads the three JSON documents. Nothing
// is unpickled and nothing but these members is read; raw tensors are read by tensors.cpp, one by one.
#include "lissome/program/pt2/archive.h"

#include <optional>

#include "lissome/program/import/detect.h"

namespace lissome {
namespace {

constexpr uint64_t kLargestMark = 256;           // bytes of archive_format and its like
constexpr uint64_t kLargestConfig = 256u << 20;  // bytes of a JSON document
constexpr uint64_t kLargestModel = 1024u << 20;
constexpr int kDeepestJson = 200;  // child graphs nest six levels each
constexpr int64_t kSchemaMajor = 8;

// The folder of `archive_format`: all other members must lie in it.
std::string find_root(const ZipReader& zip, const std::string& path) {
  std::optional<std::string> root;
  for (const ZipMember& member : zip.members()) {
    const size_t slash = member.name.find('/');
    if (slash == std::string::npos)
      throw_error(ErrorKind::invalid_input, quote(path), ": the member ", quote(member.name),
                  " lies outside the archive's folder; a .pt2 keeps all members in one");
    const std::string folder = member.name.substr(0, slash + 1);
    if (root && *root != folder)
      throw_error(ErrorKind::invalid_input, quote(path), ": the members lie in two folders, ", quote(*root), " and ",
                  quote(folder), "; a .pt2 keeps all members in one");
    root = folder;
  }
  return root.value_or("");
}

std::string read_mark(const Pt2Archive& archive, const std::string& name) {
  std::string text = archive.zip.read_text(archive.member(name), kLargestMark);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

void check_mark(const Pt2Archive& archive, const std::string& name, const std::string& allowed, ErrorKind kind) {
  const std::string seen = read_mark(archive, name);
  if (seen != allowed)
    throw_error(kind, quote(archive.zip.file()->path()), ": ", name, " is ", quote(seen), ", only ", quote(allowed),
                " is read");
}

std::vector<std::string> list_models(const Pt2Archive& archive) {
  std::vector<std::string> names;
  const std::string folder = archive.root + "models/";
  for (const ZipMember& member : archive.zip.members()) {
    if (!member.name.starts_with(folder) || !member.name.ends_with(".json")) continue;
    names.push_back(member.name.substr(folder.size(), member.name.size() - folder.size() - 5));
  }
  return names;
}

std::string choose_model(const Pt2Archive& archive) {
  const std::string path = quote(archive.zip.file()->path());
  std::vector<std::string> names = list_models(archive);
  if (names.size() == 1) return names[0];
  if (names.empty())
    throw_error(ErrorKind::invalid_input, path, " holds no exported program: models/ has no .json member");
  for (const std::string& name : names) {
    if (name == "model") return name;
  }
  throw_error(ErrorKind::unsupported, path, " holds ", names.size(), " exported programs (", join(names, ", "),
              ") and none is called 'model'; save the one to use alone with torch.export.save");
}

Json read_json(const Pt2Archive& archive, const std::string& member, uint64_t limit) {
  return parse_json(archive.zip.read_text(archive.member(member), limit), archive.zip.file()->path() + ":" + member,
                    kDeepestJson);
}

// Archives without constants may lack the document.
Json read_config(const Pt2Archive& archive, const std::string& member) {
  if (archive.zip.find(archive.root + member) == nullptr) return Json::object();
  Json document = read_json(archive, member, kLargestConfig);
  return json_object(json_member(document, "config"), "config");
}

void check_schema_version(const Pt2Archive& archive) {
  const Json& version = json_member(archive.model, "schema_version");
  const int64_t major = json_integer(json_member(version, "major"), "schema_version.major");
  if (major == kSchemaMajor) return;
  const Json* torch = find_json_member(archive.model, "torch_version");
  throw_error(ErrorKind::unsupported, quote(archive.zip.file()->path()), ": export schema version ", major,
              torch != nullptr && torch->is_string() ? " of torch " + torch->get<std::string>() : "", ", only version ",
              kSchemaMajor, " is read (torch 2.11 to 2.13). Export the model again with one of these");
}

}  // namespace

const ZipMember& Pt2Archive::member(const std::string& path) const {
  const ZipMember* found = zip.find(root + path);
  if (found == nullptr)
    throw_error(ErrorKind::invalid_input, quote(zip.file()->path()), ": the member ", quote(root + path),
                " is missing");
  return *found;
}

Pt2Archive open_pt2(const std::string& path) {
  const ModelKind kind = detect_model_kind(path);
  if (kind != ModelKind::pt2) refuse_model_kind(path, kind);
  Pt2Archive archive{ZipReader::open(path), "", "", {}, {}, {}};
  archive.root = find_root(archive.zip, path);
  check_mark(archive, "archive_format", "pt2", ErrorKind::invalid_input);
  check_mark(archive, "archive_version", "0", ErrorKind::unsupported);
  check_mark(archive, "byteorder", "little", ErrorKind::unsupported);
  archive.model_name = choose_model(archive);
  archive.model = read_json(archive, "models/" + archive.model_name + ".json", kLargestModel);
  check_schema_version(archive);
  archive.weights = read_config(archive, "data/weights/" + archive.model_name + "_weights_config.json");
  archive.constants = read_config(archive, "data/constants/" + archive.model_name + "_constants_config.json");
  return archive;
}

}  // namespace lissome
