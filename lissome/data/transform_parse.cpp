// The textual form: NAME[:VALUE][:FIELD=VALUE]..., several joined by commas, random_apply with a list in parentheses.
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>

#include "lissome/data/transform.h"

namespace lissome {
namespace {

[[noreturn]] void refuse_transform(std::string_view part, std::string_view problem, std::string_view seen,
                                   std::string_view allowed) {
  throw_error(ErrorKind::usage, "transform ", quote(part), ": ", problem, " ", quote(seen), "; allowed: ", allowed,
              ".");
}

double parse_number(std::string_view part, std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size())
    refuse_transform(part, "cannot read the number", text, "0.5, 10, 1e-3");
  return value;
}

int64_t parse_count(std::string_view part, std::string_view text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size())
    refuse_transform(part, "cannot read the size", text, "32, 224");
  return value;
}

// The parts between separators that stand in no parentheses.
std::vector<std::string_view> cut(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t first = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == separator && depth == 0)) {
      parts.push_back(text.substr(first, i - first));
      first = i + 1;
    } else {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    }
    if (depth < 0) refuse_transform(text, "there is no opening parenthesis before", text.substr(i), "as many of each");
  }
  if (depth > 0) refuse_transform(text, "there is no closing parenthesis in", text, "as many of each");
  return parts;
}

// What stands behind a name; each field is taken once by what knows it, what is left is refused.
class Fields {
 public:
  Fields(std::string_view part, std::span<const std::string_view> texts) : part_(part) {
    for (const std::string_view text : texts) {
      const size_t equals = text.find('=');
      if (equals != std::string_view::npos)
        given_.emplace_back(text.substr(0, equals), text.substr(equals + 1));
      else if (!value_ && given_.empty())
        value_ = text;
      else
        refuse_transform(part_, "there is no value in", text,
                         "one value behind the name, then FIELD=VALUE, joined by colons");
    }
  }

  std::optional<std::string_view> take_value() { return std::exchange(value_, std::nullopt); }
  std::optional<std::string_view> take(std::string_view key) {
    known_.emplace_back(key);
    const auto at = std::find_if(given_.begin(), given_.end(), [&](const auto& field) { return field.first == key; });
    if (at == given_.end()) return std::nullopt;
    const std::string_view text = at->second;
    given_.erase(at);
    return text;
  }
  std::string_view part() const { return part_; }
  void finish() const {
    if (value_) refuse_transform(part_, "it takes no value like", *value_, "no value behind this name");
    if (!given_.empty())
      refuse_transform(part_, "there is no field", given_.front().first, known_.empty() ? "none" : join(known_, ", "));
  }

 private:
  std::string_view part_;
  std::optional<std::string_view> value_;
  std::vector<std::pair<std::string_view, std::string_view>> given_;
  std::vector<std::string> known_;
};

// "224x224", or one number for both sides.
void take_sizes(Fields& fields, int64_t& height, int64_t& width) {
  const auto text = fields.take_value();
  if (!text)
    refuse_transform(fields.part(), "there are no sizes in", fields.part(),
                     "HEIGHTxWIDTH behind the name, as in resize:224x224");
  const size_t by = std::min(text->find('x'), text->size());
  height = parse_count(fields.part(), text->substr(0, by));
  width = by == text->size() ? height : parse_count(fields.part(), text->substr(by + 1));
}

// "0.02/0.33"
void take_range(Fields& fields, std::string_view key, double& least, double& most) {
  const auto text = fields.take(key);
  if (!text) return;
  const auto ends = cut(*text, '/');
  if (ends.size() != 2)
    refuse_transform(fields.part(), join({std::string(key), "is not a range:"}, " "), *text, "LEAST/MOST");
  least = parse_number(fields.part(), ends[0]);
  most = parse_number(fields.part(), ends[1]);
}

std::vector<double> take_list(Fields& fields, std::string_view key) {
  std::vector<double> values;
  if (const auto text = fields.take(key))
    for (const std::string_view item : cut(*text, '/')) values.push_back(parse_number(fields.part(), item));
  return values;
}

Transform read_to_float(Fields&) { return {ToFloat{}}; }
Transform read_flip(Fields&) { return {Flip{}}; }
Transform read_normalize(Fields& fields) {
  Normalize normalize;
  normalize.mean = take_list(fields, "mean");
  normalize.deviation = take_list(fields, "deviation");
  return {normalize};
}
Transform read_resize(Fields& fields) {
  Resize resize;
  take_sizes(fields, resize.height, resize.width);
  return {resize};
}
Transform read_center_crop(Fields& fields) {
  CenterCrop crop;
  take_sizes(fields, crop.height, crop.width);
  return {crop};
}
Transform read_random_crop(Fields& fields) {
  RandomCrop crop;
  take_sizes(fields, crop.height, crop.width);
  if (const auto padding = fields.take("padding")) crop.padding = parse_count(fields.part(), *padding);
  return {crop};
}
Transform read_rotate(Fields& fields) {
  Rotate rotate;
  if (const auto degrees = fields.take_value()) {
    rotate.most = parse_number(fields.part(), *degrees);
    rotate.least = -rotate.most;
  }
  take_range(fields, "degrees", rotate.least, rotate.most);
  return {rotate};
}
Transform read_erase(Fields& fields) {
  Erase erase;
  take_range(fields, "area", erase.least_area, erase.most_area);
  take_range(fields, "ratio", erase.least_ratio, erase.most_ratio);
  if (const auto value = fields.take("value")) erase.value = static_cast<float>(parse_number(fields.part(), *value));
  return {erase};
}
Transform read_random_apply(Fields& fields) {
  RandomApply apply;
  if (const auto value = fields.take_value()) apply.probability = parse_number(fields.part(), *value);
  return {apply};
}

struct TransformName {
  std::string_view name;
  Transform (*read)(Fields& fields);
};
constexpr std::array kTransforms = {
    TransformName{"center_crop", read_center_crop},
    TransformName{"erase", read_erase},
    TransformName{"flip", read_flip},
    TransformName{"normalize", read_normalize},
    TransformName{"random_apply", read_random_apply},
    TransformName{"random_crop", read_random_crop},
    TransformName{"resize", read_resize},
    TransformName{"rotate", read_rotate},
    TransformName{"to_float", read_to_float},
};
constexpr int kDeepest = 8;

std::vector<Transform> parse_list(std::string_view text, int depth);

Transform parse_one(std::string_view part, int depth) {
  if (depth > kDeepest) refuse_transform(part, "the nesting is too deep:", part, "8 levels of parentheses");
  const size_t open = std::min(part.find('('), part.size());
  const std::vector<std::string_view> words = cut(part.substr(0, open), ':');
  std::vector<std::string> known;
  for (const TransformName& row : kTransforms) {
    known.emplace_back(row.name);
    if (row.name != words[0]) continue;
    Fields fields(part, std::span(words).subspan(1));
    Transform transform = row.read(fields);
    fields.finish();
    auto* apply = std::get_if<RandomApply>(&transform.kind);
    if ((apply != nullptr) != (open < part.size()) || (apply != nullptr && part.back() != ')'))
      refuse_transform(part, "parentheses are not allowed in", part,
                       "random_apply:PROBABILITY(TRANSFORMS) has them, nothing else");
    if (apply != nullptr) apply->transforms = parse_list(part.substr(open + 1, part.size() - open - 2), depth + 1);
    return transform;
  }
  refuse_transform(part, "there is no transform", words[0], join(known, ", "));
}

std::vector<Transform> parse_list(std::string_view text, int depth) {
  std::vector<Transform> transforms;
  for (const std::string_view part : cut(text, ',')) transforms.push_back(parse_one(part, depth));
  return transforms;
}

}  // namespace

std::vector<Transform> parse_transforms(std::string_view text) { return parse_list(text, 0); }

bool makes_floats(std::string_view text) {
  if (text.empty()) return false;
  const std::vector<Transform> transforms = parse_transforms(text);
  return std::any_of(transforms.begin(), transforms.end(),
                     [](const Transform& transform) { return std::holds_alternative<ToFloat>(transform.kind); });
}

}  // namespace lissome
