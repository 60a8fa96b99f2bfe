#include "lissome/train/rewrite/mode_dependence.h"

#include <doctest/doctest.h>

namespace lissome {
namespace {

bool depends(const std::string& line) {
  return depends_on_mode(
      parse_program("input %x: f32[2, 3, 4]\nparameter @w: f32[3]\nbuffer @s: f32[3]\n" + line + "\nreturn %x\n"));
}

}  // namespace

TEST_CASE("batch norm, instance norm with running statistics and dropout depend on the mode") {
  CHECK(depends("%y: f32[2, 3, 4] = aten::batch_norm(%x, @w, @w, @s, @s, false, 0.1, 1e-05, true)"));
  CHECK(depends("%y: f32[2, 3, 4] = aten::instance_norm(%x, @w, @w, @s, @s, false, 0.1, 1e-05, true)"));
  CHECK_FALSE(depends("%y: f32[2, 3, 4] = aten::instance_norm(%x, @w, @w, none, none, true, 0.1, 1e-05, true)"));
  CHECK(depends("%y: f32[2, 3, 4] = aten::dropout(%x, 0.5, false)"));
  CHECK_FALSE(depends("%y: f32[2, 3, 4] = aten::dropout(%x, 0.0, false)"));
  CHECK(depends("%y: f32[2, 3, 4] = aten::feature_dropout(%x, 0.5, false)"));
  CHECK_FALSE(depends("%y: f32[2, 3, 4] = aten::relu(%x)"));
  CHECK_FALSE(depends("%y: f32[2, 3, 4] = aten::layer_norm(%x, [4], none, none)"));
}

TEST_CASE("dropout between the layers of a GRU depends on the mode") {
  const auto gru = [](const char* dropout) {
    return std::string("%y: f32[2, 3, 2], %n: f32[1, 2, 2] = aten::gru.input(%x, %h, [@a, @b, @c, @c], true, 1, ") +
           dropout + ", false, false, true)";
  };
  const auto depends = [](const std::string& line) {
    return depends_on_mode(parse_program(
        "input %x: f32[2, 3, 4]\ninput %h: f32[1, 2, 2]\nparameter @a: f32[6, 4]\nparameter @b: f32[6, 2]\n"
        "parameter @c: f32[6]\n" +
        line + "\nreturn %y\n"));
  };
  CHECK(depends(gru("0.2")));
  CHECK_FALSE(depends(gru("0.0")));
}

}  // namespace lissome
