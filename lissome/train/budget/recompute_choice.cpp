// See recompute_choice.h.
#include "lissome/train/budget/recompute_choice.h"

#include <charconv>

#include "lissome/base.h"

namespace lissome {

Recompute parse_recompute(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string word = text.substr(0, colon), rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (text == "none") return KeepAll{};
  if (text == "auto") return RecomputeToFit{};
  if (word == "modules" && !rest.empty()) return RecomputeModules{rest};
  if (word == "every") {
    int modules = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), modules);
    if (error == std::errc() && end == rest.data() + rest.size() && modules > 0) return RecomputeEvery{modules};
  }
  if (word == "adaptive") {
    double share = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), share);
    if (error == std::errc() && end == rest.data() + rest.size() && share > 0 && share <= 1)
      return RecomputeToFit{share};
  }
  throw_error(ErrorKind::usage,
              "--recompute must be none, auto, every:N, modules:PATTERN or adaptive:SHARE (0 to 1), not ", quote(text));
}

}  // namespace lissome
