// See split_joined.h.
#include "lissome/train/rewrite/split_joined.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "lissome/train/optim/gradient_mask.h"

namespace lissome {
namespace {

// Each part reads and writes the result once more, which costs little beside its products.
constexpr size_t kMostParts = 4;
constexpr int64_t kLeastChannels = 16;

struct Part {
  Argument input;
  int64_t begin = 0, end = 0;  // channels of what is joined
  Argument weight;             // those channels of it, once written
};

struct PartGradient {
  std::optional<ValueId> value;  // of the data, where it is read
  int read_at = 0;               // position of the node that reads it first
};

struct Gradient {
  int position = 0;  // of a convolution_backward
  GradientMask mask{};
  std::vector<PartGradient> parts;
};

struct Joined {
  int join = 0, convolution = 0;
  std::vector<Part> parts;
  std::vector<Gradient> gradients;
};

class JoinedFinder {
 public:
  explicit JoinedFinder(const Program& program) : program_(program), uses_(find_uses(program)) {}

  std::vector<Joined> find() {
    std::vector<Joined> found;
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      Joined joined;
      joined.join = static_cast<int>(i);
      if (program_.nodes[i].is("aten::cat") && read_parts(joined) && read_uses(joined)) found.push_back(joined);
    }
    return found;
  }

  // Positions of the nodes that take a part of a gradient.
  const std::set<int>& slices() const { return slices_; }

 private:
  const Node& node(int position) const { return program_.nodes[static_cast<size_t>(position)]; }
  const ValueType& type(ValueId id) const { return program_.value(id).type; }
  bool is_node(int position) const { return static_cast<size_t>(position) < program_.nodes.size(); }

  bool read_parts(Joined& joined) const {
    const Node& join = node(joined.join);
    const Argument& inputs = join.argument("tensors");
    const ValueType& made = type(join.result());
    const auto* dim = join.argument("dim").get<int64_t>();
    if (!inputs.is_list() || inputs.list().size() < 2 || inputs.list().size() > kMostParts ||
        made.dtype != Dtype::f32 || (made.sizes.size() != 3 && made.sizes.size() != 4) || !dim ||
        (*dim != 1 && *dim + std::ssize(made.sizes) != 1))
      return false;
    int64_t begin = 0;
    for (const Argument& input : inputs.list()) {
      if (!input.is_value() || type(input.value()).dtype != Dtype::f32 ||
          type(input.value()).sizes.size() != made.sizes.size())
        return false;
      const std::optional<int64_t> channels = type(input.value()).sizes[1].constant();
      if (!channels || *channels < kLeastChannels) return false;
      joined.parts.push_back({input, begin, begin + *channels, {}});
      begin += *channels;
    }
    return true;
  }

  bool read_uses(Joined& joined) {
    int convolutions = 0;
    std::set<int> slices;
    for (const auto& [position, argument] : uses_.by_value[static_cast<size_t>(node(joined.join).result())]) {
      if (!is_node(position)) return false;
      const Node& user = node(position);
      const bool forward = user.is("aten::convolution");
      if ((!forward && !user.is("aten::convolution_backward")) || !is_plain(user, joined)) return false;
      if (forward) {
        joined.convolution = position;
        ++convolutions;
      } else if (!read_gradient(joined, position, slices)) {
        return false;
      }
    }
    const auto follows = [&](const Gradient& gradient) {
      return gradient.position > joined.convolution &&
             node(gradient.position).argument("weight") == node(joined.convolution).argument("weight");
    };
    if (convolutions != 1 || !std::all_of(joined.gradients.begin(), joined.gradients.end(), follows)) return false;
    slices_.merge(slices);
    return true;
  }

  // The node reads the concatenation only as its input, has one group and is not transposed.
  bool is_plain(const Node& user, const Joined& joined) const {
    const Argument whole(node(joined.join).result()), &weight = user.argument("weight");
    return user.argument("input") == whole && weight.is_value() && weight != whole &&
           type(weight.value()).dtype == Dtype::f32 && user.argument("transposed") == Argument(false) &&
           user.argument("groups") == Argument(int64_t{1}) &&
           (user.is("aten::convolution") || user.argument("grad_output") != whole);
  }

  bool read_gradient(Joined& joined, int position, std::set<int>& slices) const {
    const std::optional<GradientMask> mask = read_gradient_mask(node(position));
    if (!mask) return false;
    Gradient gradient{position, *mask, std::vector<PartGradient>(joined.parts.size())};
    if (gradient.mask[0]) {
      for (const auto& [reader, argument] : uses_.by_value[static_cast<size_t>(node(position).results[0])]) {
        const std::optional<size_t> part = is_node(reader) ? find_part(node(reader), joined) : std::nullopt;
        if (!part || gradient.parts[*part].value) return false;
        const ValueId taken = node(reader).result();
        const auto& readers = uses_.by_value[static_cast<size_t>(taken)];
        gradient.parts[*part] = {taken, readers.empty() ? reader : readers.front().first};
        slices.insert(reader);
      }
    }
    joined.gradients.push_back(std::move(gradient));
    return true;
  }

  // The part whose channels this node takes.
  static std::optional<size_t> find_part(const Node& taker, const Joined& joined) {
    if (!taker.is("aten::slice.Tensor") || taker.argument("dim") != Argument(int64_t{1}) ||
        taker.argument("step") != Argument(int64_t{1}))
      return std::nullopt;
    for (size_t i = 0; i < joined.parts.size(); ++i) {
      const Part& part = joined.parts[i];
      if (taker.argument("start") == Argument(part.begin) && taker.argument("end") == Argument(part.end)) return i;
    }
    return std::nullopt;
  }

  const Program& program_;
  const Uses uses_;
  std::set<int> slices_;
};

class JoinedWriter {
 public:
  JoinedWriter(Program& program, std::vector<Joined> found, std::set<int> left_out)
      : program_(program), nodes_(std::move(program.nodes)), found_(std::move(found)), left_out_(std::move(left_out)) {
    program.nodes.clear();
    for (size_t i = 0; i < found_.size(); ++i) {
      left_out_.insert(found_[i].join);
      replaced_[found_[i].convolution] = {i, nullptr};
      for (const Gradient& gradient : found_[i].gradients) replaced_[gradient.position] = {i, &gradient};
    }
  }

  void write() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int position = static_cast<int>(i);
      if (const auto at = replaced_.find(position); at != replaced_.end()) {
        Joined& joined = found_[at->second.first];
        const Gradient* gradient = at->second.second;
        gradient ? write_gradient(joined, *gradient) : write_convolution(joined);
      } else if (!left_out_.contains(position)) {
        program_.nodes.push_back(std::move(nodes_[i]));
      }
    }
  }

 private:
  const Node& at(int position) const { return nodes_[static_cast<size_t>(position)]; }
  const ValueType& type(const Argument& value) const { return program_.value(value.value()).type; }

  void cut_weight(Joined& joined) {
    const Node& convolution = at(joined.convolution);
    const Argument& whole = convolution.argument("weight");
    for (Part& part : joined.parts) {
      ValueType made = type(whole);
      made.sizes[1] = part.end - part.begin;
      const Node& cut = program_.add_node(Op::find("aten::slice.Tensor"),
                                          {whole, int64_t{1}, Argument(part.begin), Argument(part.end), int64_t{1}},
                                          {std::move(made)}, convolution.origin);
      part.weight = Argument(cut.result());
    }
  }

  // The sum goes from part to part; the bias is the last one's.
  void write_convolution(Joined& joined) {
    cut_weight(joined);
    const Node& whole = at(joined.convolution);
    Node first = whole;
    first.argument("input") = joined.parts[0].input, first.argument("weight") = joined.parts[0].weight;
    first.argument("bias") = Argument();
    first.results = {program_.add_value(type(Argument(whole.result())))};
    Argument sum(first.result());
    program_.nodes.push_back(std::move(first));
    for (size_t i = 1; i < joined.parts.size(); ++i) {
      const bool last = i + 1 == joined.parts.size();
      ArgumentList arguments = {joined.parts[i].input, joined.parts[i].weight,
                                last ? whole.argument("bias") : Argument()};
      for (const char* name : {"stride", "padding", "dilation", "transposed", "output_padding", "groups"})
        arguments.push_back(whole.argument(name));
      arguments.insert(arguments.end(), {Argument(std::string("none")), sum});
      Node& made = program_.add_node(Op::find("lissome::conv_act"), std::move(arguments),
                                     {type(Argument(whole.result()))}, whole.origin);
      if (last) made.results = {whole.result()};
      sum = Argument(made.result());
    }
  }

  // First the gradients of the weight, which read the concatenation, then those of the data in the order of their first
  // readers: the gradient of a skip connection is read long after the others.
  void write_gradient(const Joined& joined, const Gradient& gradient) {
    const Node& whole = at(gradient.position);
    if (gradient.mask[1]) {
      write_weight_gradient(joined, gradient);
    } else if (gradient.mask[2]) {
      program_.nodes.push_back(take_part(whole, joined.parts[0], {false, false, true}));
    }
    std::vector<size_t> order(joined.parts.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return gradient.parts[a].read_at < gradient.parts[b].read_at; });
    for (const size_t part : order) {
      const std::optional<ValueId>& data = gradient.parts[part].value;
      if (!data) continue;
      Node some = take_part(whole, joined.parts[part], {true, false, false});
      some.results[0] = *data;
      program_.nodes.push_back(std::move(some));
    }
  }

  // The gradient of the bias is computed with that of the first part.
  void write_weight_gradient(const Joined& joined, const Gradient& gradient) {
    const Node& whole = at(gradient.position);
    ArgumentList gradients;
    for (const Part& part : joined.parts) {
      Node some = take_part(whole, part, {false, true, gradients.empty() && gradient.mask[2]});
      some.results[1] = program_.add_value(type(part.weight));
      gradients.emplace_back(some.results[1]);
      program_.nodes.push_back(std::move(some));
    }
    const ValueType made = type(Argument(whole.results[1]));
    program_.add_node(Op::find("aten::cat"), {Argument(std::move(gradients)), int64_t{1}}, {made}, whole.origin)
        .results = {whole.results[1]};
  }

  Node take_part(const Node& whole, const Part& part, const GradientMask& mask) {
    Node some = take_gradients(program_, whole, mask);
    some.argument("input") = part.input, some.argument("weight") = part.weight;
    return some;
  }

  Program& program_;
  std::vector<Node> nodes_;
  std::vector<Joined> found_;
  std::set<int> left_out_;                                      // joins, and what takes parts of gradients
  std::map<int, std::pair<size_t, const Gradient*>> replaced_;  // by position: of which join; none for the convolution
};

}  // namespace

int split_joined(Program& program) {
  JoinedFinder finder(program);
  std::vector<Joined> found = finder.find();
  const int count = static_cast<int>(found.size());
  if (count == 0) return 0;
  JoinedWriter(program, std::move(found), finder.slices()).write();
  verify_program(program, Stage::optimized);
  return count;
}

}  // namespace lissome
