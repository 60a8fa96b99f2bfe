// Twins whose reference step is at fault: its program calls an op that no file may call, one of each class at least, or
// does not fit the step.
#include <functional>
#include <string_view>

#include "tests/refuse/twins.h"

namespace lissome {
namespace {

// In place of aten::tanh(%x), whose operand stands for %x here.
struct DeniedOp {
  std::string_view group, call;
};

constexpr DeniedOp kDeniedOps[] = {
    {"files", R"(aten::from_file("ran", true, 12))"},
    {"files", R"(aten::from_file.out("ran", true, 12, out=%x))"},
    {"resizes", "aten::resize_(%x, [1000000])"},
    {"resizes", "aten::resize_as_(%x, %x)"},
    {"resizes", "aten::_resize_output_(%x, [1000000], cpu)"},
    {"resizes", "aten::sparse_resize_(%x, [1000000], 1, 0)"},
    {"points elsewhere", "aten::set_.source_Tensor(%x, %x)"},
    {"points elsewhere", "aten::as_strided_(%x, [2, 6], [6, 1])"},
    {"points elsewhere", "inductor::_reinterpret_tensor(%x, [2, 6], [6, 1], 1000000)"},
    {"points elsewhere", "inductor::_alloc_from_pool(%x, 1000000, f32, [2, 6], [6, 1])"},
    {"writes to out", "aten::tanh.out(%x, out=%x)"},
    {"writes to out", "aten::add.out(%x, %x, out=%x)"},
    {"writes to out",
     "aten::max_pool2d_with_indices_backward.grad_input(%x, %x, [2], [2], [0], [1], false, %x, "
     "grad_input=%x)"},
    {"trusts indices", "aten::max_pool2d_with_indices_backward(%x, %x, [2, 2], [2, 2], [0, 0], [1, 1], false, %x)"},
    {"trusts indices", "aten::adaptive_max_pool2d_backward(%x, %x, %x)"},
    {"trusts indices", "aten::fractional_max_pool2d_backward(%x, %x, [2, 2], [1, 1], %x)"},
    {"trusts indices", "aten::_embedding_bag_dense_backward(%x, %x, %x, %x, %x, 5, false, 0, none)"},
    {"trusts indices", "aten::_embedding_bag_per_sample_weights_backward(%x, %x, %x, %x, %x, 0)"},
    {"trusts indices", "aten::_segment_reduce_backward(%x, %x, %x, \"sum\", lengths=%x)"},
    {"trusts indices", "aten::_ctc_loss_backward(%x, %x, %x, [2], [2], %x, %x, 0)"},
    {"unsafe", "aten::segment_reduce(%x, \"sum\", lengths=%x, unsafe=true)"},
    {"unsafe", "aten::_sparse_csr_tensor_unsafe(%x, %x, %x, [2, 6])"},
    {"unsafe", "aten::_sparse_csc_tensor_unsafe(%x, %x, %x, [2, 6])"},
    {"unsafe", "aten::_sparse_coo_tensor_unsafe(%x, %x, [2, 6])"},
    {"unsafe", "aten::_sparse_compressed_tensor_unsafe(%x, %x, %x, [2, 6])"},
    {"unsafe", "aten::_nested_view_from_buffer(%x, %x, %x, %x)"},
    {"unsafe", "aten::_nested_view_from_buffer_copy(%x, %x, %x, %x)"},
    {"raw quantized", "aten::_make_per_tensor_quantized_tensor(%x, 0.1, 0)"},
    {"raw quantized", "aten::fbgemm_pack_gemm_matrix_fp16(%x)"},
    {"raw quantized", "quantized::embedding_bag_byte_rowwise_offsets(%x, %x)"},
    {"raw quantized", "quantized::embedding_bag_byte_unpack(%x)"},
    {"raw quantized", "aten::_dyn_quant_matmul_4bit(%x, %x, 32, 6, 6)"},
    {"devices", "aten::_pin_memory(%x)"},
    {"devices", "aten::_cudnn_init_dropout_state(0.5, true, 0)"},
    {"processes", R"(_c10d_functional::all_reduce(%x, "sum", "0"))"},
    {"internals", "aten::_test_check_tensor(%x)"},
    {"internals", "aten::to_mkldnn(%x)"},
    {"unknown", "aten::no_such_op(%x)"},
    {"unknown", "evil::run(%x)"},
};

// Statements that make nothing, before the node.
constexpr DeniedOp kDeniedStatements[] = {
    {"unknown", R"(aten::save(%x, "ran"))"},
    {"console", R"(aten::_print("ran"))"},
    {"points elsewhere", "aten::set_data(%x, %x)"},
    {"unknown", "aten::manual_seed(7)"},
};

constexpr std::string_view kSeed = "reference_between", kNode = "aten::tanh(";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// "aten::from_file" of "aten::from_file.out(...)".
std::string op_of(std::string_view call) {
  const std::string name(call.substr(0, call.find('(')));
  return name.substr(0, name.find('.'));
}

class ReferenceBreaker {
 public:
  ReferenceBreaker(const Seed& seed, Twins& twins) : seed_(seed), twins_(twins) {
    while (seed.plan.steps.at(position_).kernel != kReferenceStep) ++position_;
    const std::string& text = seed.plan.steps[position_].program;
    call_at_ = text.find(kNode);
    if (call_at_ == std::string::npos)
      throw_error(ErrorKind::internal, "the reference step is not ", kNode, ":\n", text);
    const size_t end = text.find(')', call_at_);
    call_ = text.substr(call_at_, end + 1 - call_at_);
    operand_ = call_.substr(kNode.size(), call_.size() - kNode.size() - 1);
    line_at_ = text.rfind('\n', call_at_) + 1;
  }

  void break_all() const {
    for (const DeniedOp& op : kDeniedOps) {
      std::string call(op.call);
      replace_all(call, "%x", operand_);
      add_denied(op, [&](Twin& twin) { replace_call(twin, call); });
    }
    for (const DeniedOp& op : kDeniedStatements) {
      std::string call(op.call);
      replace_all(call, "%x", operand_);
      add_denied(op, [&](Twin& twin) { insert_statement(twin, call); });
    }
    break_body();
    break_fit();
    break_text();
  }

 private:
  Json& step(Twin& twin) const { return twin.plan["steps"][position_]; }
  std::string text() const { return seed_.plan.steps[position_].program; }

  void add(std::string rule, std::vector<std::string> words, const std::function<void(Twin&)>& change) const {
    Twin twin{"reference: " + std::move(rule), std::move(words), seed_.json, {}, false};
    change(twin);
    twins_.add(seed_, std::move(twin));
  }
  void add_denied(const DeniedOp& op, const std::function<void(Twin&)>& change) const {
    const std::string name(op.call.substr(0, op.call.find('(')));
    add(name + ": " + std::string(op.group), {op_of(op.call), op.group == "unknown" ? "op '" : "list of ops"}, change);
  }
  void replace_call(Twin& twin, const std::string& call) const {
    std::string changed = text();
    replace_all(changed, call_, call);
    step(twin)["program"] = changed;
  }
  // A node of its own, with an origin as all nodes have.
  void insert_statement(Twin& twin, const std::string& statement) const {
    step(twin)["program"] = text().insert(line_at_, statement + "\n");
    step(twin)["origins"].push_back(step(twin)["origins"][0]);
  }

  void break_body() const {
    const std::string body = " {\n  input %a: f32[2, 6]\n  %b: f32[2, 6] = CALL\n  return %b\n}";
    const auto make = [&](const std::string& call) {
      std::string inside = body;
      replace_all(inside, "CALL", call);
      return "lissome::cond(true, " + operand_ + ")" + inside + inside;
    };
    add("a body: control", {}, [&](Twin& twin) {
      replace_call(twin, make("aten::tanh(%a)"));
      twin.runs = true;
    });
    add("a body: denied", {"aten::from_file"},
        [&](Twin& twin) { replace_call(twin, make(R"(aten::from_file("ran", true, 12))")); });
  }

  // How the program and its step belong together.
  void break_fit() const {
    add("operands: one too many", {"reference step", "operands"},
        [&](Twin& twin) { step(twin)["operands"].push_back(step(twin)["operands"][0]); });
    add("operands: none", {"reference step", "operands"}, [&](Twin& twin) { step(twin)["operands"] = Json::array(); });
    add("operands: missing", {"missing"}, [&](Twin& twin) { step(twin)["operands"][0] = -1; });
    add("operands: position", {"there is no value"}, [&](Twin& twin) { step(twin)["operands"][0] = 99; });
    add("operands: order", {"is used before it is made"},
        [&](Twin& twin) { step(twin)["operands"] = step(twin)["results"]; });
    add("results: one too many", {"reference step", "results"}, [&](Twin& twin) {
      step(twin)["results"].push_back(add_value(twin, {{"name", "twin.extra"}, {"storage", "held"}}));
    });
    add("results: in the arena", {"cannot be the result of"},
        [&](Twin& twin) { twin.plan["values"][step(twin)["results"][0].get<size_t>()]["storage"] = "arena"; });
    add("origins: one too many", {"reference step", "origins"},
        [&](Twin& twin) { step(twin)["origins"].push_back(step(twin)["origins"][0]); });
    add("program: none", {"program"}, [&](Twin& twin) { step(twin).erase("program"); });
    add("attributes: unknown", {"no attribute 'no_such_attribute'"},
        [&](Twin& twin) { step(twin)["attributes"]["no_such_attribute"] = 1; });
    for (const auto& [rule, dtype, sizes] :
         {std::tuple{"result: dtype", "i64", Json{2, 6}}, std::tuple{"result: sizes", "f32", Json{1, 6}}}) {
      add(rule, {"planned"}, [&](Twin& twin) {
        Json& value = twin.plan["values"][step(twin)["results"][0].get<size_t>()];
        value["dtype"] = dtype, value["sizes"] = sizes;
      });
    }
  }

  void break_text() const {
    const auto change = [&](const std::string& rule, std::vector<std::string> words, const std::string& program) {
      add(rule, std::move(words), [&](Twin& twin) { step(twin)["program"] = program; });
    };
    const std::string head = text().substr(0, text().rfind("return"));
    change("return: a literal", {"return"}, head + "return 7\n");
    change("return: none", {"return"}, head + "return none\n");
    change("return: a list", {"return"}, head + "return [" + operand_ + "]\n");
    change("return: a name that is not there", {"nowhere"}, head + "return %nowhere\n");
    change("text: broken", {"line"}, text() + "%%%\n");
    change("text: a word behind it", {"line"}, text() + "input\n");
    std::string weight = text();
    weight.insert(line_at_, "parameter @nothing: f32[2, 6]\n");
    replace_all(weight, call_, "aten::mul.Tensor(" + operand_ + ", @nothing)");
    change("weight: not in the plan", {"nothing"}, weight);
  }

  const Seed& seed_;
  Twins& twins_;
  size_t position_ = 0, call_at_ = 0, line_at_ = 0;
  std::string call_, operand_;
};

}  // namespace

void break_references(const Seed& seed, Twins& twins) {
  if (seed.name == kSeed) ReferenceBreaker(seed, twins).break_all();
}

}  // namespace lissome
