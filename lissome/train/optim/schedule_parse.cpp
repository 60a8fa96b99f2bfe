// The textual form of schedules, for the command line:
//   schedule = part *( "+" part )        part = name [ ":" field *( "," field ) ] [ "@" count ]
//   field    = key "=" value             count = digits [ "e" ]      30e: thirty epochs
#include <algorithm>
#include <array>
#include <charconv>

#include "lissome/base.h"
#include "lissome/train/optim/schedule.h"

namespace lissome {
namespace {

[[noreturn]] void refuse(std::string_view part, std::string_view what, std::string_view seen,
                         std::string_view allowed) {
  throw_error(ErrorKind::usage, "schedule ", quote(part), ": ", what, " ", quote(seen), "; allowed: ", allowed);
}

double parse_number(std::string_view part, std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size())
    refuse(part, "cannot read the number", text, "0.1, 3e-4, 10");
  return value;
}

int64_t parse_count(std::string_view part, std::string_view text, int64_t steps_per_epoch) {
  const bool epochs = text.ends_with('e');
  const std::string_view digits = epochs ? text.substr(0, text.size() - 1) : text;
  int64_t value = 0, steps = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc() || end != digits.data() + digits.size() || value < 0 ||
      __builtin_mul_overflow(value, epochs ? steps_per_epoch : 1, &steps)) {
    refuse(part, "cannot read the number of steps", text, "1000 (steps), 30e (epochs)");
  }
  return steps;
}

// The fields of one part. Each is taken once by the code that knows it; fields left at the end are refused.
class Fields {
 public:
  Fields(std::string_view part, std::string_view text, const ScheduleSetting& setting)
      : part_(part), setting_(setting) {
    for (const std::string& field : text.empty() ? std::vector<std::string>{} : split(text, ',')) {
      const size_t equals = field.find('=');
      if (equals == std::string::npos) refuse(part_, "there is no value in", field, "key=value, joined by commas");
      given_.emplace_back(field.substr(0, equals), field.substr(equals + 1));
    }
  }

  void take(std::string_view key, double& value) {
    if (const auto text = find(key)) value = parse_number(part_, *text);
  }
  void take(std::string_view key, int64_t& value) {
    if (const auto text = find(key)) value = parse_count(part_, *text, setting_.steps_per_epoch);
  }
  void take(std::string_view key, std::vector<int64_t>& value) {
    const auto text = find(key);
    if (!text) return;
    for (const std::string& item : split(*text, '/')) {
      value.push_back(parse_count(part_, item, setting_.steps_per_epoch));
    }
  }
  // Reads one of two words; `value` tells whether it is the first.
  void take(std::string_view key, bool& value, std::string_view yes, std::string_view no) {
    const auto text = find(key);
    if (!text) return;
    if (*text != yes && *text != no)
      refuse(part_, join({std::string(key), "is not"}, " "), *text, join({std::string(yes), std::string(no)}, ", "));
    value = *text == yes;
  }
  void finish() const {
    if (given_.empty()) return;
    refuse(part_, "there is no field", given_.front().first, known_.empty() ? "none" : join(known_, ", "));
  }
  // For fields that have no default.
  void require(std::string_view key) {
    const auto named = [&](const auto& field) { return field.first == key; };
    if (std::none_of(given_.begin(), given_.end(), named))
      refuse(part_, "a value is missing for the field", key, "a value for it");
  }

 private:
  std::optional<std::string> find(std::string_view key) {
    known_.emplace_back(key);
    const auto at = std::find_if(given_.begin(), given_.end(), [&](const auto& field) { return field.first == key; });
    if (at == given_.end()) return {};
    std::string text = at->second;
    given_.erase(at);
    return text;
  }

  std::string_view part_;
  const ScheduleSetting& setting_;
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> known_;
};

// `length`: the steps that the part holds for.
RateShape read_constant(Fields& fields, double, int64_t) {
  ConstantRate shape;
  fields.take("factor", shape.factor);
  return shape;
}
RateShape read_linear(Fields& fields, double, int64_t length) {
  LinearRate shape{.steps = length};
  fields.take("start", shape.start);
  fields.take("end", shape.end);
  fields.take("steps", shape.steps);
  return shape;
}
RateShape read_cosine(Fields& fields, double, int64_t length) {
  CosineRate shape{.steps = length};
  fields.take("steps", shape.steps);
  fields.take("min", shape.min);
  return shape;
}
RateShape read_one_cycle(Fields& fields, double rate, int64_t length) {
  OneCycleRate shape{.max = rate, .steps = length};
  fields.take("max", shape.max);
  fields.take("steps", shape.steps);
  fields.take("pct_start", shape.pct_start);
  fields.take("div_factor", shape.div_factor);
  fields.take("final_div_factor", shape.final_div_factor);
  fields.take("anneal", shape.cosine, "cos", "linear");
  fields.take("phases", shape.three_phase, "3", "2");
  fields.take("cycle_momentum", shape.cycle_momentum, "yes", "no");
  fields.take("base_momentum", shape.base_momentum);
  fields.take("max_momentum", shape.max_momentum);
  return shape;
}
RateShape read_step(Fields& fields, double, int64_t) {
  StepRate shape;
  fields.require("size");
  fields.take("size", shape.size);
  fields.take("gamma", shape.gamma);
  return shape;
}
RateShape read_multi_step(Fields& fields, double, int64_t) {
  MultiStepRate shape;
  fields.require("milestones");
  fields.take("milestones", shape.milestones);
  fields.take("gamma", shape.gamma);
  return shape;
}
RateShape read_exponential(Fields& fields, double, int64_t) {
  ExponentialRate shape;
  fields.require("gamma");
  fields.take("gamma", shape.gamma);
  return shape;
}
RateShape read_polynomial(Fields& fields, double, int64_t length) {
  PolynomialRate shape{.steps = length};
  fields.take("steps", shape.steps);
  fields.take("power", shape.power);
  return shape;
}
RateShape read_plateau(Fields& fields, double, int64_t) {
  PlateauRate shape;
  bool lower = true;
  fields.take("mode", lower, "min", "max");
  shape.better = lower ? Better::lower : Better::higher;
  fields.take("factor", shape.factor);
  fields.take("patience", shape.patience);
  fields.take("threshold", shape.threshold);
  fields.take("threshold_mode", shape.relative, "rel", "abs");
  fields.take("cooldown", shape.cooldown);
  fields.take("min", shape.min);
  fields.take("eps", shape.eps);
  return shape;
}

struct ShapeName {
  std::string_view name;
  RateShape (*read)(Fields& fields, double rate, int64_t length);
};
constexpr std::array kShapes = {
    ShapeName{"constant", read_constant},
    ShapeName{"cosine", read_cosine},
    ShapeName{"exponential", read_exponential},
    ShapeName{"linear", read_linear},
    ShapeName{"multistep", read_multi_step},
    ShapeName{"onecycle", read_one_cycle},
    ShapeName{"plateau", read_plateau},
    ShapeName{"polynomial", read_polynomial},
    ShapeName{"step", read_step},
};

const ShapeName& find_shape(std::string_view part, std::string_view name) {
  std::vector<std::string> known;
  for (const ShapeName& shape : kShapes) {
    if (shape.name == name) return shape;
    known.emplace_back(shape.name);
  }
  refuse(part, "there is no shape", name, join(known, ", "));
}

// The text of a part without its first step.
struct PartText {
  std::string text;
  int64_t begin = 0;
};

std::vector<PartText> cut_parts(std::string_view text, const ScheduleSetting& setting) {
  std::vector<PartText> parts;
  for (const std::string& part : split(text, '+')) {
    const size_t at = part.rfind('@');
    if (at == std::string::npos && !parts.empty()) {
      refuse(part, "there is no first step in", part, "NAME@STEP for every part but the first, as in cosine@100");
    }
    if (at == std::string::npos) {
      parts.push_back({part, 0});
    } else {
      parts.push_back(
          {part.substr(0, at), parse_count(part, std::string_view(part).substr(at + 1), setting.steps_per_epoch)});
    }
  }
  return parts;
}

void read_part(const PartText& part, int64_t end, const ScheduleSetting& setting, std::vector<SchedulePart>& parts) {
  const size_t colon = std::min(part.text.find(':'), part.text.size());
  const ShapeName& shape = find_shape(part.text, std::string_view(part.text).substr(0, colon));
  const size_t rest = std::min(colon + 1, part.text.size());
  Fields fields(part.text, std::string_view(part.text).substr(rest), setting);
  int64_t warm_up = 0, begin = part.begin;
  fields.take("warmup", warm_up);
  if (warm_up > 0 && warm_up >= end - begin)
    throw_error(ErrorKind::usage, "schedule ", quote(part.text), ": a warm-up of ", warm_up,
                " steps leaves none of the ", end - begin,
                " steps\nGive a shorter warm-up, or train for more steps (--epochs, a smaller --batch)");
  if (warm_up > 0) {
    parts.push_back({begin, LinearRate{.start = 1.0 / static_cast<double>(warm_up), .steps = warm_up}});
    begin += warm_up;
  }
  parts.push_back({begin, shape.read(fields, setting.learning_rate, end - begin)});
  fields.finish();
}

}  // namespace

Schedule parse_schedule(std::string_view text, const ScheduleSetting& setting) {
  const std::vector<PartText> texts = cut_parts(text, setting);
  std::vector<SchedulePart> parts;
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t end = i + 1 < texts.size() ? texts[i + 1].begin : setting.total_steps;
    read_part(texts[i], end, setting, parts);
  }
  try {
    return Schedule(setting.learning_rate, std::move(parts));
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, error.message());
  }
}

}  // namespace lissome
