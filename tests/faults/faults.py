"""Faults in what judges: statistics, the gate, the front, observers, and what chooses factors and numbers of weights.

Each is a text of a file that becomes another, which compiles, and which a unit test has to notice.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    file: str  # below lissome/
    before: str  # stands once in it
    after: str
    meaning: str


STATISTICS = "measure/statistics.cpp"
GATE = "tune/gate.cpp"
FRONT = "tune/front.cpp"
HISTOGRAM = "compress/range_histogram.cpp"
LAYER = "compress/layer.cpp"
QUANTIZE = "compress/quantize_int8.cpp"
SMOOTH = "compress/smooth_channels.cpp"
ROUNDING = "compress/group_rounding.cpp"

FAULTS = (
    Fault(STATISTICS, "numerator[i] / denominator[i]", "denominator[i] / numerator[i]", "ratios upside down"),
    Fault(STATISTICS, "find_rank(sorted.size(), (1 - confidence) / 2)", "find_rank(sorted.size(), 1 - confidence)",
          "an interval of one side, called one of two"),
    Fault(STATISTICS, "const size_t first = std::max<size_t>(rank, 1) - 1;", "const size_t first = rank;",
          "an interval that is one rank too narrow"),
    Fault(STATISTICS, "const size_t first = std::max<size_t>(rank, 1) - 1;", "const size_t first = 0;",
          "an interval that never narrows"),
    Fault(STATISTICS, "sorted[sorted.size() - 1 - first]", "sorted[sorted.size() - 1 - first] * 0.99",
          "an upper bound that is 1 % too low"),
    Fault(STATISTICS, "std::min(1.0, 2 * sum)", "std::min(1.0, sum)", "a test of one side, called one of two"),
    Fault(STATISTICS, "heads <= std::min(below, above)", "heads < std::min(below, above)",
          "a sign test without its largest term"),
    Fault(STATISTICS, "return r < 1;", "return r <= 1;", "ties that speak for the faster"),
    Fault(STATISTICS, "(count_ - heads_) / (heads_ + 1)", "(count_ - heads_) / (heads_ + 2)", "wrong binomial terms"),
    Fault(STATISTICS, "/ static_cast<double>(count - k);", "/ 1;", "several claims, each at the level of one"),
    Fault(STATISTICS, "/ static_cast<double>(count - k);", "/ static_cast<double>(count);",
          "Bonferroni's level where Holm's is promised"),
    Fault(STATISTICS, "decided = decided && p_values[order[k]] <= 1 - level;", "decided = true;",
          "no stop at the first claim that is not decided"),
    Fault(STATISTICS, "p_values[order[k]] <= 1 - level", "p_values[order[k]] >= 1 - level", "a stop turned round"),
    Fault(STATISTICS, "return p_values[a] < p_values[b]", "return p_values[a] > p_values[b]",
          "the weakest claim first"),
    Fault(STATISTICS, "first.interval.low * second.interval.low", "first.interval.low * second.median",
          "a chained interval of one link"),
    Fault(STATISTICS, "first.confidence - (1 - second.confidence)", "first.confidence",
          "a chain as sure as one of its links"),
    Fault(STATISTICS, "(position - static_cast<double>(low)) *", "0 *", "percentiles that are not interpolated"),
    Fault(STATISTICS, "std::sqrt(squares / (count - 1))", "std::sqrt(squares / count)", "a deviation that is too small"),
    Fault(GATE, "const bool faster = verdict.ratio.interval.high < 1 - kLeastGain;",
          "const bool faster = verdict.ratio.interval.low < 1 - kLeastGain;", "the gate's bound turned round"),
    Fault(GATE, "const bool faster = verdict.ratio.interval.high < 1 - kLeastGain;",
          "const bool faster = verdict.ratio.median < 1 - kLeastGain;", "a median for a bound"),
    Fault(GATE, "const bool faster = verdict.ratio.interval.high < 1 - kLeastGain;",
          "const bool faster = verdict.ratio.interval.high < 1;", "gains of nothing"),
    Fault(GATE, "const bool not_slower = verdict.ratio.interval.high <= 1;",
          "const bool not_slower = verdict.ratio.interval.low <= 1;", "what may be slower counts as not slower"),
    Fault(GATE, "kDecided = 1 - (1 - kConfidence) / kLooks;", "kDecided = 0.95;", "looks that decide too soon"),
    Fault(GATE, "estimate_ratio(times[1], times[0], confidence)", "estimate_ratio(times[0], times[1], confidence)",
          "looks at the ratio upside down"),
    Fault(GATE, "interval.high < 1 - kLeastGain || interval.low > useless", "interval.low < 1 - kLeastGain",
          "looks that end at the first hope"),
    Fault(GATE, "!options.confirm || verdict.ratio.interval.high < kBeyondLuck", "true", "no confirmation"),
    Fault(GATE, "timing.ratios[1].median >= 1 - kLeastGain", "timing.ratios[1].median >= 2",
          "confirmations that nothing contradicts"),
    Fault(GATE, "i < kConfirmations", "i < 1", "a single confirmation"),
    Fault(GATE, "(1 - kLeastSaving) * static_cast<double>(need.before)",
          "(1 + kLeastSaving) * static_cast<double>(need.before)", "more memory counts as less"),
    Fault(GATE, "rivals.memory.exceeds() || rivals.size.exceeds()", "rivals.memory.exceeds() && rivals.size.exceeds()",
          "goals for bytes of which one suffices"),
    Fault(GATE, "goal && before > *goal && is_smaller(*this)", "goal && before < *goal && is_smaller(*this)",
          "a met goal that is come closer to"),
    Fault(GATE, "rivals.latency_goal && verdict.seconds_after > *rivals.latency_goal",
          "rivals.latency_goal && verdict.seconds_after < *rivals.latency_goal", "a latency goal turned round"),
    Fault(FRONT, "<= same_quality_;", "<= same_quality_ || true;", "a front that is blind to quality"),
    Fault(FRONT, "(higher_is_better_ ? *b.quality", "(!higher_is_better_ ? *b.quality", "quality turned round"),
    Fault(FRONT, "is_more(a.memory, b.memory) ||", "", "a front that is blind to memory"),
    Fault(FRONT, "other.allowed && beats(other, point, false)", "beats(other, point, false)",
          "versions that lose too much stand in the way of others"),
    Fault(FRONT, "if (!beats(point, other, true)) return false;", "return false;", "what is beaten stays"),
    Fault(HISTOGRAM, "inside * range.scale() * range.scale() / 12", "inside * range.scale() / 12",
          "the error of rounding, linear for squared"),
    Fault(HISTOGRAM, "square - 2 * end * value + end * end * count", "std::abs(value - end * count)",
          "the error of clipping, linear for squared"),
    Fault(HISTOGRAM, "find_distance(0, first, range.low) +", "", "clipping below costs nothing"),
    Fault(HISTOGRAM, "kTail = 1e-4", "kTail = 1e-2", "a percentile that cuts a hundred times as much"),
    Fault(HISTOGRAM, "cut = histogram.counts[last]; cut <= kTail * total", "cut = histogram.counts[last]; cut <= 0",
          "a percentile of one side"),
    Fault(HISTOGRAM, "sum_of_highs / tensors", "high", "an average that is the largest"),
    Fault(HISTOGRAM, "clipped.back() += histogram.counts[bin];", "clipped.back() += 0;",
          "entropy that forgets what it clips"),
    Fault(HISTOGRAM, "divergence -= std::max(bins_of_level - 1, 0.0) / (2 * total);", "divergence -= bins_of_level * 0;",
          "entropy without Miller's correction"),
    Fault(HISTOGRAM, "std::max(high, most) : most;", "most : most;", "extremes of the last batch alone"),
    Fault(HISTOGRAM, "if (value == 0 || !(value >= low", "if (!(value >= low", "zeros that count as values"),
    Fault(HISTOGRAM, "{.low = std::min(low, 0.0),", "{.low = low,", "ranges without zero"),
    Fault(HISTOGRAM, "center < range.low || center > range.high", "center > range.high",
          "clipping that is counted on one side"),
    Fault(HISTOGRAM, "std::llround(-low / scale())", "static_cast<int64_t>(-low / scale())",
          "a zero point that is cut off"),
    Fault(HISTOGRAM, "std::isfinite(narrow) && narrow > 0", "std::isfinite(narrow)", "a scale of zero"),
    Fault(QUANTIZE, "base.add(correction)", "base.sub(correction)", "biases moved the wrong way"),
    Fault(QUANTIZE, "std::get<0>(at::stack(block_means).median(0))", "at::stack(block_means).mean(0)",
          "biases moved by a few large errors"),
    Fault(QUANTIZE, "squares - 2 * together + added", "squares + 2 * together + added",
          "noise that grows with a correction"),
    Fault(LAYER, "10 * std::log10(signal / noise)", "10 * std::log10(noise / signal)",
          "noise for signal"),
    Fault(QUANTIZE, "layer.signal_to_noise < least_signal_to_noise", "layer.signal_to_noise > least_signal_to_noise",
          "good layers stay in float"),
    Fault(SMOOTH, "raise_small(columns).pow(1 - strength)", "raise_small(columns).pow(strength)", "wrong factors"),
    Fault(SMOOTH, ": kLeastGain) / 10)", ": -kLeastGain) / 10)", "smoothing that makes it worse"),
    Fault(ROUNDING, "at::where(loss.lt(least), scale, best)", "at::where(loss.gt(least), scale, best)", "worst scales"),
    Fault(ROUNDING, "own.addr_(change, inside[i]);", "own.addr_(change, inside[i], 1, -1);",
          "columns that make it worse for each other"),
    Fault(ROUNDING, "matrix.diagonal().copy_(damp(matrix.diagonal()));", "", "products that may have no inverse"),
)
