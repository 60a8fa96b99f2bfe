// See split_scores.h.
#include "lissome/train/rewrite/split_scores.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lissome/kernel.h"
#include "lissome/runtime/step/gemm/matmul_steps.h"

namespace lissome {
namespace {

constexpr int64_t kMostBlocks = 16;
// With fewer rows, repacking weights and updating their gradient for each block would cost much beside the products.
constexpr int64_t kLeastRows = 128;

// Positions of the nodes that know all rows of the scores.
struct Scores {
  int product = -1, logarithms = -1, loss = -1, loss_gradient = -1, gradient = -1;
  std::vector<int> data;             // mm(gradient, ...)
  std::vector<int> turned, weights;  // permute(gradient), mm(turned, ...)
  int one = -1;                      // ones_like(loss), where that is the gradient of the loss
};

class ScoresFinder {
 public:
  ScoresFinder(const Program& program, const Plan& plan) : program_(program), uses_(find_uses(program)) {
    for (const PlanStep& step : plan.steps) {
      if (!is_step<MatmulF32Step>(step)) continue;
      const Result y = read_step<MatmulF32Step>(step).y;
      native_products_.insert(static_cast<ValueId>(plan.value(y.value).program_value));
    }
  }

  std::optional<Scores> find() const {
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!program_.nodes[i].is("aten::_log_softmax_backward_data")) continue;
      Scores found;
      found.gradient = static_cast<int>(i);
      if (read_loss(found) && read_product(found) && read_gradients(found) && comes_before(found)) return found;
    }
    return std::nullopt;
  }

 private:
  const Node& node(int position) const { return program_.nodes[static_cast<size_t>(position)]; }
  int producer(const Argument& argument) const {
    return argument.is_value() ? uses_.producer[static_cast<size_t>(argument.value())] : -1;
  }
  // Outputs count as uses behind the last node.
  bool makes(int position, std::string_view op) const {
    return position >= 0 && static_cast<size_t>(position) < program_.nodes.size() && node(position).is(op);
  }
  bool is_product(int position) const {
    return makes(position, "aten::mm") && native_products_.contains(node(position).result());
  }

  // A matrix whose width does not vary.
  bool has_width(const Argument& matrix) const {
    const ValueType& type = program_.value(matrix.value()).type;
    return type.sizes.size() == 2 && type.sizes[1].constant();
  }

  // The loss and its gradient read the same logarithms, and nobody else does.
  bool read_loss(Scores& found) const {
    const Node& gradient = node(found.gradient);
    found.loss_gradient = producer(gradient.argument("grad_output"));
    found.logarithms = producer(gradient.argument("output"));
    if (!makes(found.loss_gradient, "aten::nll_loss_backward") || !makes(found.logarithms, "aten::log_softmax.int"))
      return false;
    const Node& loss_gradient = node(found.loss_gradient);
    found.loss = producer(loss_gradient.argument("total_weight"));
    if (!makes(found.loss, "aten::nll_loss_forward") || !refers_to_labels(node(found.loss))) return false;
    for (const char* name : {"self", "target", "weight", "reduction", "ignore_index"}) {
      if (!(node(found.loss).argument(name) == loss_gradient.argument(name))) return false;
    }
    const int maker = producer(loss_gradient.argument("grad_output"));
    const bool unit = makes(maker, "aten::ones_like") && producer(node(maker).argument("self")) == found.loss;
    if (unit && uses_.count(node(maker).result()) == 1) found.one = maker;
    return loss_gradient.argument("self") == gradient.argument("output") &&
           uses_.count(node(found.logarithms).result()) == 3 && uses_.count(loss_gradient.result()) == 1 &&
           uses_.count(node(found.loss).results[1]) == 1;
  }

  // A mean or a sum over labels of equal weight. Ignored labels differ from classes by their sign.
  static bool refers_to_labels(const Node& loss) {
    const auto* reduction = loss.argument("reduction").get<int64_t>();
    const auto* ignored = loss.argument("ignore_index").get<int64_t>();
    return loss.argument("weight").is_none() && reduction && *reduction != 0 && ignored && *ignored < 0;
  }

  bool read_product(Scores& found) const {
    const Node& logarithms = node(found.logarithms);
    found.product = producer(logarithms.argument("self"));
    const auto* dim = logarithms.argument("dim").get<int64_t>();
    return is_product(found.product) && has_width(node(found.product).argument("self")) && dim &&
           (*dim == 1 || *dim == -1) && uses_.count(node(found.product).result()) == 1;
  }

  bool read_gradients(Scores& found) const {
    for (const auto& [position, argument] : uses_.by_value[static_cast<size_t>(node(found.gradient).result())]) {
      if (argument == 0 && is_product(position)) {
        found.data.push_back(position);
      } else if (!makes(position, "aten::permute") || !read_weights(found, position)) {
        return false;
      }
    }
    return true;
  }

  bool read_weights(Scores& found, int turned) const {
    found.turned.push_back(turned);
    const auto& uses = uses_.by_value[static_cast<size_t>(node(turned).result())];
    for (const auto& [position, argument] : uses) {
      if (argument != 0 || !is_product(position) || !has_width(node(position).argument("mat2"))) return false;
      found.weights.push_back(position);
    }
    return true;
  }

  // All values that the blocks read are available where the loss is computed.
  bool comes_before(const Scores& found) const {
    std::vector<Argument> read;
    for (const auto* products : {&found.data, &found.weights}) {
      for (const int position : *products) read.push_back(node(position).argument("mat2"));
    }
    if (found.one < 0) read.push_back(node(found.loss_gradient).argument("grad_output"));
    return std::all_of(read.begin(), read.end(), [&](const Argument& argument) {
      const int maker = producer(argument);
      return maker < found.loss && maker != found.logarithms && maker != found.product;
    });
  }

  const Program& program_;
  const Uses uses_;
  std::set<ValueId> native_products_;  // what they make
};

// The most blocks of equal size that are not too small. Rows of a block are even: kernels take six together, and a
// single one left over would be summed in another order.
int choose_blocks(const Dimension& rows, const DimensionBindings& sizes) {
  const std::optional<int64_t> count = rows.try_evaluate(sizes);
  if (!count) return 0;
  for (int64_t blocks = std::min(kMostBlocks, *count / kLeastRows); blocks > 1; --blocks) {
    const Dimension pairs = Dimension::combine(Dimension::Operation::floor_divide, rows, 2 * blocks);
    if (Dimension::combine(Dimension::Operation::multiply, pairs, 2 * blocks) == rows) return static_cast<int>(blocks);
  }
  return 0;
}

// Writes the blocks in place of the loss.
class BlockWriter {
 public:
  BlockWriter(Program& program, const Scores& scores, int blocks)
      : program_(program), nodes_(std::move(program.nodes)), scores_(scores), blocks_(blocks) {
    program.nodes.clear();
    rows_ = type(at(scores.product).result()).sizes[0];
    part_ = Dimension::combine(Dimension::Operation::floor_divide, rows_, blocks);
    replaced_ = {scores.product, scores.logarithms, scores.one, scores.loss_gradient, scores.gradient};
    for (const auto* positions : {&scores.data, &scores.turned, &scores.weights})
      replaced_.insert(positions->begin(), positions->end());
  }

  void write() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int position = static_cast<int>(i);
      if (position == scores_.loss) {
        write_blocks();
      } else if (!replaced_.contains(position)) {
        program_.nodes.push_back(nodes_[i]);
      }
    }
  }

 private:
  const Node& at(int position) const { return nodes_[static_cast<size_t>(position)]; }
  const ValueType& type(ValueId id) const { return program_.value(id).type; }

  ValueId add(std::string_view op, ArgumentList arguments, ValueType made) {
    return program_.add_node(Op::find(op), std::move(arguments), {std::move(made)}, at(scores_.loss).origin).result();
  }
  // A copy of the node with the values of a block.
  ValueId repeat(const Node& node, const std::vector<std::pair<const char*, ValueId>>& arguments, ValueType made) {
    Node block = node;
    for (const auto& [name, value] : arguments) block.argument(name) = value;
    block.results = {program_.add_value(std::move(made))};
    program_.nodes.push_back(block);
    return block.result();
  }

  // The rows of a block, along `dim`, of a value.
  ValueType cut(ValueId whole, size_t dim = 0) const {
    ValueType made = type(whole);
    made.sizes[dim] = part_;
    return made;
  }

  // [rows, ...] as [blocks, rows of a block, ...], `inner` being the sizes behind the rows.
  ValueId stack(ValueId whole, const ArgumentList& inner, const std::vector<Dimension>& sizes) {
    ArgumentList wanted = {Argument(blocks_), Argument(-1)};
    wanted.insert(wanted.end(), inner.begin(), inner.end());
    ValueType made = type(whole);
    made.sizes = {blocks_, part_};
    made.sizes.insert(made.sizes.end(), sizes.begin(), sizes.end());
    return add("aten::reshape", {whole, std::move(wanted)}, std::move(made));
  }
  ValueId stack_rows(const Argument& whole) {
    const ValueId id = whole.value();
    if (const auto found = stacks_.find(id); found != stacks_.end()) return found->second;
    const Dimension width = type(id).sizes[1];
    return stacks_[id] = stack(id, {Argument(*width.constant())}, {width});
  }
  ValueId select(ValueId stacked, int block) {
    ValueType made = type(stacked);
    made.sizes.erase(made.sizes.begin());
    return add("aten::select.int", {stacked, 0, block}, std::move(made));
  }

  // The number of labels that count, as the loss gives it to its gradient.
  ValueId count_labels(const Argument& labels, const Argument& ignored) {
    ValueType made = type(labels.value());
    made.dtype = Dtype::boolean;
    const ValueId used = add("aten::ne.Scalar", {labels, ignored}, made);
    made.dtype = Dtype::f32;
    const ValueId ones = add("aten::where.Scalar", {used, 1.0, 0.0}, made);
    return add("aten::sum", {ones}, {.kind = ValueKind::tensor, .dtype = Dtype::f32, .sized = true, .sizes = {}});
  }

  void write_blocks() {
    const Node& loss = at(scores_.loss);
    const Argument& labels = loss.argument("target");
    counted_ = count_labels(labels, loss.argument("ignore_index"));
    one_ = at(scores_.loss_gradient).argument("grad_output").value();
    if (scores_.one >= 0) one_ = add("aten::ones_like", {counted_}, type(counted_));
    x_ = stack_rows(at(scores_.product).argument("self"));
    labels_ = stack(labels.value(), {}, {});
    const ValueId indices = add("aten::clamp_min", {labels, 0}, type(labels.value()));
    indices_ = stack(indices, {Argument(1)}, {1});
    for (const int weight : scores_.weights) stack_rows(at(weight).argument("mat2"));
    data_.resize(scores_.data.size());
    sums_.resize(scores_.weights.size());
    for (int block = 0; block < blocks_; ++block) write_block(block);
    for (size_t i = 0; i < data_.size(); ++i) put_together(data_[i], at(scores_.data[i]).result());
    finish_loss();
  }

  void write_block(int block) {
    const Node &product = at(scores_.product), &logarithms = at(scores_.logarithms);
    const ValueId scores = repeat(product, {{"self", select(x_, block)}}, cut(product.result()));
    const ValueId logs = repeat(logarithms, {{"self", scores}}, cut(logarithms.result()));
    ValueType column = type(logs);
    column.sizes[1] = 1;
    picked_.emplace_back(add("aten::gather", {logs, 1, select(indices_, block)}, std::move(column)));
    const Node &loss = at(scores_.loss_gradient), &gradient = at(scores_.gradient);
    const ValueId through_loss = repeat(
        loss, {{"grad_output", one_}, {"self", logs}, {"target", select(labels_, block)}, {"total_weight", counted_}},
        cut(loss.result()));
    const ValueId through_softmax =
        repeat(gradient, {{"grad_output", through_loss}, {"output", logs}}, cut(gradient.result()));
    write_gradients(through_softmax, block);
  }

  void write_gradients(ValueId gradient, int block) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Node& weight = at(scores_.weights[i]);
      const Node& turn = *std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) {
        return !node.results.empty() && Argument(node.results[0]) == weight.argument("self");
      });
      const ValueId turned = repeat(turn, {{"self", gradient}}, cut(turn.result(), 1));
      const ValueId rows = select(stack_rows(weight.argument("mat2")), block);
      const ValueType& made = type(weight.result());
      sums_[i] = block == 0 ? repeat(weight, {{"self", turned}, {"mat2", rows}}, made)
                            : add("lissome::add_products", {sums_[i], turned, rows}, made);
      if (block + 1 == blocks_) program_.nodes.back().results = {weight.result()};
    }
    for (size_t i = 0; i < data_.size(); ++i) {
      const Node& data = at(scores_.data[i]);
      data_[i].emplace_back(repeat(data, {{"self", gradient}}, cut(data.result())));
    }
  }

  void put_together(const ArgumentList& parts, ValueId whole) {
    add("aten::cat", {parts, 0}, type(whole));
    program_.nodes.back().results = {whole};
  }

  // The element of each row at its label, as scores of one class.
  void finish_loss() {
    Node loss = at(scores_.loss);
    ValueType column = type(picked_[0].value());
    column.sizes[0] = rows_;
    loss.argument("self") = add("aten::cat", {picked_, 0}, std::move(column));
    const ValueId labels = loss.argument("target").value();
    loss.argument("target") = add("aten::clamp_max", {labels, 0}, type(labels));
    program_.nodes.push_back(std::move(loss));
  }

  Program& program_;
  const std::vector<Node> nodes_;
  const Scores& scores_;
  const int blocks_;
  Dimension rows_, part_;  // of all; of a block
  std::set<int> replaced_;
  std::map<ValueId, ValueId> stacks_;
  ValueId counted_ = ValueId::none, one_ = ValueId::none, x_ = ValueId::none, labels_ = ValueId::none,
          indices_ = ValueId::none;
  ArgumentList picked_;
  std::vector<ArgumentList> data_;  // by gradient of data: of the blocks
  std::vector<ValueId> sums_;       // by gradient of a weight: so far
};

}  // namespace

int split_scores(Program& program, const Plan& plan, const DimensionBindings& sizes) {
  // The portable kernel sums in double, and would round where blocks meet.
  if (find_kernel("matmul_f32").isa == Isa::portable) return 0;
  const std::optional<Scores> scores = ScoresFinder(program, plan).find();
  if (!scores) return 0;
  const Node& product = program.nodes[static_cast<size_t>(scores->product)];
  const int blocks = choose_blocks(program.value(product.result()).type.sizes[0], sizes);
  if (blocks == 0) return 0;
  BlockWriter(program, *scores, blocks).write();
  verify_program(program, Stage::optimized);
  return blocks;
}

}  // namespace lissome
