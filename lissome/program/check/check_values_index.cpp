// Checks of tensors that say where: embedding bags, packed sequences, segments, CTC labels, sparse indices.
#include <ATen/core/ivalue.h>
#include <ATen/ops/_validate_sparse_compressed_tensor_args.h>
#include <ATen/ops/_validate_sparse_coo_tensor_args.h>
#include <ATen/ops/aminmax.h>

#include <array>
#include <vector>

#include "lissome/program/check/check_recurrent.h"
#include "lissome/program/check/check_values_rows.h"

namespace lissome {

bool is_present(const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); }

std::string print_sizes(at::IntArrayRef sizes) { return format_sizes(sizes.vec()); }

at::Tensor read_integers(std::string_view argument, const at::Tensor& tensor) {
  require_value(tensor.defined() && at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false), "'", argument,
                "' must hold integers");
  return tensor.to(at::kCPU, at::kLong).contiguous();
}

void require_range(std::string_view argument, const at::Tensor& tensor, int64_t low, int64_t high) {
  const at::Tensor integers = read_integers(argument, tensor);
  if (integers.numel() == 0) return;
  const auto [smallest, largest] = at::aminmax(integers);
  const int64_t least = smallest.item().toLong(), most = largest.item().toLong();
  require_value(least >= low && most <= high, "'", argument, "' holds ", least < low ? least : most, ", allowed are ",
                low, " to ", high);
}

void check_sparse_indices(std::string_view argument, const at::Tensor& tensor) {
  try {
    if (tensor.layout() == at::kSparse) {
      at::_validate_sparse_coo_tensor_args(tensor._indices(), tensor._values(), tensor.sizes(), tensor.is_coalesced());
    } else {
      const bool by_row = tensor.layout() == at::kSparseCsr || tensor.layout() == at::kSparseBsr;
      at::_validate_sparse_compressed_tensor_args(by_row ? tensor.crow_indices() : tensor.ccol_indices(),
                                                  by_row ? tensor.col_indices() : tensor.row_indices(), tensor.values(),
                                                  tensor.sizes(), tensor.layout());
    }
  } catch (const c10::Error& error) {
    throw_error(ErrorKind::invalid_input, "the sparse tensor '", argument, "': ", error.what_without_backtrace());
  }
}

namespace {

// Numbers that never fall, from 0 (or more) to `last` at most.
void require_rising(std::string_view argument, const at::Tensor& tensor, int64_t last) {
  const at::Tensor integers = read_integers(argument, tensor);
  const auto* const numbers = integers.const_data_ptr<int64_t>();
  int64_t before = 0;
  for (int64_t i = 0; i < integers.numel(); ++i) {
    require_value(numbers[i] >= before && numbers[i] <= last, "'", argument, "' holds ", numbers[i], " behind ", before,
                  "; allowed are numbers that never fall, up to ", last);
    before = numbers[i];
  }
}

// (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx)
void check_embedding_bag(IValueSpan arguments) {
  const at::Tensor &weight = arguments[0].toTensor(), &indices = arguments[1].toTensor(),
                   &offsets = arguments[2].toTensor();
  // torch.nn.functional flattens two dimensions of indices; given such, the op reads offsets that need not be there.
  require_value(weight.dim() == 2 && indices.dim() == 1,
                "a bag takes a table of rows and one dimension of indices, not ", print_sizes(weight.sizes()), " and ",
                print_sizes(indices.sizes()));
  require_range("indices", indices, 0, weight.size(0) - 1);
  require_value(offsets.dim() == 1 && offsets.numel() > 0, "there must be one dimension of offsets, and at least one");
  require_rising("offsets", offsets, indices.numel());
  // Indices behind the last one would belong to no bag.
  const bool last = arguments[7].toBool();
  require_value(!last || (offsets.numel() > 1 && offsets[-1].item().toLong() == indices.numel()),
                "the last of the offsets is included, so it must be the number of indices, ", indices.numel(),
                ", and not the first");
  if (is_present(arguments[6])) {
    require_value(arguments[6].toTensor().sizes() == indices.sizes(), "there are weights ",
                  print_sizes(arguments[6].toTensor().sizes()), " for indices ", print_sizes(indices.sizes()));
  }
}

std::vector<int64_t> read_lengths(std::string_view name, const c10::IValue& value) {
  if (value.isIntList()) return value.toIntVector();
  const at::Tensor integers = read_integers(name, value.toTensor());
  return {integers.const_data_ptr<int64_t>(), integers.const_data_ptr<int64_t>() + integers.numel()};
}

// (log_probs [T, N, C] or [T, C], targets, input_lengths, target_lengths, blank, ...)
void check_ctc(IValueSpan arguments) {
  const at::Tensor &scores = arguments[0].toTensor(), &targets = arguments[1].toTensor();
  require_value(scores.dim() == 2 || scores.dim() == 3, "the scores must have 2 or 3 dimensions");
  const int64_t classes = scores.size(-1), steps = scores.size(0), batch = scores.dim() == 3 ? scores.size(1) : 1;
  const int64_t blank = arguments[4].toInt();
  require_value(blank >= 0 && blank < classes, "the blank is ", blank, ", allowed are 0 to ", classes - 1);
  const auto inputs = read_lengths("input_lengths", arguments[2]),
             labels = read_lengths("target_lengths", arguments[3]);
  require_value(static_cast<int64_t>(inputs.size()) == batch && static_cast<int64_t>(labels.size()) == batch,
                "there are ", inputs.size(), " and ", labels.size(), " lengths for a batch of ", batch);
  const bool padded = targets.dim() == 2;
  require_value(targets.dim() <= 2 && (!padded || targets.size(0) == batch), "targets ", print_sizes(targets.sizes()),
                " for a batch of ", batch);
  int64_t total = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    require_value(inputs[i] >= 0 && inputs[i] <= steps, "an input is ", inputs[i], " long, of ", steps);
    const int64_t free = padded ? targets.size(1) : targets.numel() - total;
    require_value(labels[i] >= 0 && labels[i] <= free, "a target is ", labels[i], " long, of ", free);
    // What pads a target may be any number.
    const at::Tensor line = padded ? targets[static_cast<int64_t>(i)] : targets.reshape({-1});
    require_range("targets", line.narrow(0, padded ? 0 : total, labels[i]), 0, classes - 1);
    total += labels[i];
  }
}

// log_alpha [batch, steps, 2 * longest target + 1] is set where an input and its target reach. Neither the loss nor its
// gradient reads the rest, so that its version for autograd stays.
void clear_unset_alpha(IValueSpan arguments, IValueSpan results) {
  const auto inputs = read_lengths("input_lengths", arguments[2]),
             labels = read_lengths("target_lengths", arguments[3]);
  const at::Tensor alpha = results[1].toTensor().variable_data();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor own = alpha[static_cast<int64_t>(i)];
    const int64_t steps = std::max<int64_t>(inputs[i], 1), states = 2 * labels[i] + 1;
    own.narrow(0, steps, own.size(0) - steps).zero_();
    own.narrow(1, states, own.size(1) - states).zero_();
  }
}

// (input, lengths, batch_first)
void check_pack(IValueSpan arguments) {
  const at::Tensor &input = arguments[0].toTensor(), &lengths = arguments[1].toTensor();
  const bool batch_first = arguments[2].toBool();
  require_value(input.dim() >= 2, "a padded batch has 2 dimensions at least");
  const int64_t steps = input.size(batch_first ? 1 : 0), batch = input.size(batch_first ? 0 : 1);
  require_value(lengths.dim() == 1 && lengths.size(0) == batch, "there are lengths ", print_sizes(lengths.sizes()),
                " for a batch of ", batch);
  require_range("lengths", lengths, 1, steps);
}

// Batch sizes of a packed sequence never rise and add up to its rows.
void require_packed(const at::Tensor& data, const at::Tensor& sizes) {
  require_value(data.dim() >= 1 && sizes.dim() == 1 && sizes.numel() > 0, "a packed sequence has batch sizes");
  const at::Tensor integers = read_integers("batch_sizes", sizes);
  const auto* const numbers = integers.const_data_ptr<int64_t>();
  int64_t left = data.size(0), before = left;
  for (int64_t i = 0; i < integers.numel(); ++i) {
    require_value(numbers[i] > 0 && numbers[i] <= before && numbers[i] <= left, "batch_sizes hold ", numbers[i],
                  " behind ", before, "; they fall from step to step and add up to the ", data.size(0), " rows");
    before = numbers[i];
    left -= numbers[i];
  }
  require_value(left == 0, "batch_sizes leave ", left, " of ", data.size(0), " rows");
}

// (data, batch_sizes, ...)
void check_packed(IValueSpan arguments) { require_packed(arguments[0].toTensor(), arguments[1].toTensor()); }

template <int64_t gates>
void check_packed_layers(IValueSpan arguments) {
  check_packed(arguments);
  check_packed_recurrent(arguments, gates);
}

// (data, reduce, lengths, indices, offsets, axis, unsafe, initial)
void check_segments(IValueSpan arguments) {
  require_value(!arguments[6].toBool(), "unsafe=true leaves out the checks; it must be false");
  const at::Tensor& data = arguments[0].toTensor();
  const int64_t axis = arguments[5].toInt();
  require_value(axis >= 0 && axis < data.dim(), "the axis is ", axis, " of ", data.dim(), " dimensions");
  const int64_t rows = data.size(axis);
  for (const auto& [position, name] : {std::pair(2, "lengths"), std::pair(4, "offsets")}) {
    if (!is_present(arguments[static_cast<size_t>(position)])) continue;
    const at::Tensor& given = arguments[static_cast<size_t>(position)].toTensor();
    require_value(given.dim() == axis + 1 && given.sizes().slice(0, static_cast<size_t>(axis)) ==
                                                 data.sizes().slice(0, static_cast<size_t>(axis)),
                  "'", name, "' is ", print_sizes(given.sizes()), " for data ", print_sizes(data.sizes()));
    require_range(name, given, 0, rows);
    const at::Tensor lines = read_integers(name, given).reshape({-1, given.size(axis)});
    for (int64_t i = 0; i < lines.size(0); ++i) {
      const at::Tensor line = lines[i];
      if (position == 4) {
        require_rising(name, line, rows);
        continue;
      }
      const auto* const numbers = line.const_data_ptr<int64_t>();
      int64_t total = 0;
      for (int64_t k = 0; k < line.numel(); ++k) total += numbers[k];
      require_value(total == rows, "'", name, "' add up to ", total, ", not to ", rows);
    }
  }
}

// (self, src, ...): what is copied between layouts goes through ops of their own.
void check_copy(IValueSpan arguments) {
  require_value(arguments[0].toTensor().layout() == arguments[1].toTensor().layout(),
                "a sparse tensor is copied to one of its own layout");
}

// The copy without writing takes the storage of its first argument, which a sparse tensor has not.
void check_pure_copy(IValueSpan arguments) {
  for (const size_t position : {0, 1})
    require_value(arguments[position].toTensor().layout() == at::kStrided,
                  "it copies dense tensors, none that is sparse");
}

}  // namespace

ResultFinish find_result_finish(const Op& op) {
  const bool is_ctc = op.is("aten::_ctc_loss") || op.is("aten::_ctc_loss.Tensor");
  return is_ctc ? clear_unset_alpha : nullptr;
}

std::span<const ValueCheckRow> index_check_rows() {
  static constexpr std::array<ValueCheckRow, 17> kRows = {{{"aten::embedding_bag", check_embedding_bag},
                                                           {"aten::embedding_bag.padding_idx", check_embedding_bag},
                                                           {"aten::_embedding_bag", check_embedding_bag},
                                                           {"aten::_embedding_bag_forward_only", check_embedding_bag},
                                                           {"aten::ctc_loss.IntList", check_ctc},
                                                           {"aten::ctc_loss.Tensor", check_ctc},
                                                           {"aten::_ctc_loss", check_ctc},
                                                           {"aten::_ctc_loss.Tensor", check_ctc},
                                                           {"aten::_pack_padded_sequence", check_pack},
                                                           {"aten::_pad_packed_sequence", check_packed},
                                                           {"aten::lstm.data", check_packed_layers<4>},
                                                           {"aten::gru.data", check_packed_layers<3>},
                                                           {"aten::rnn_tanh.data", check_packed_layers<1>},
                                                           {"aten::rnn_relu.data", check_packed_layers<1>},
                                                           {"aten::segment_reduce", check_segments},
                                                           {"aten::copy", check_pure_copy},
                                                           {"aten::copy_", check_copy}}};
  return kRows;
}

}  // namespace lissome
