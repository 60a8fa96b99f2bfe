// See align_recordings.h. The calls must be the same, one by one, but for contiguous(): it is a call only where the
// tensor is not contiguous already, which depends on sizes (a dimension of 1 has no say in it).
#include "lissome/program/import/align_recordings.h"

#include <algorithm>

namespace lissome {
namespace {

std::string name_of(const RecordedCall& call) {
  const c10::OperatorName& name = call.op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

bool is_contiguous_call(const RecordedCall& call) { return call.op.operator_name().name == "aten::contiguous"; }

bool gives_number(const RecordedCall& call) {
  return call.results.size() == 1 && !call.results[0].is_none() && !call.results[0].is_value() &&
         !call.results[0].is_list();
}

class Aligner {
 public:
  Aligner(const ModuleRun& base, const ModuleRun& other)
      : base_(base), other_(other), numbers_(base.recording.tensors.size(), ValueId::none) {
    // Inputs and state come first, in the same order.
    const size_t known = base.known;
    for (size_t i = 0; i < known; ++i) numbers_[i] = static_cast<ValueId>(i);
  }

  void run() {
    const auto& calls = other_.recording.calls;
    size_t next = 0;
    for (const RecordedCall& call : base_.recording.calls) {
      if (gives_number(call)) number_read_ = name_of(call);
      const bool left = next < calls.size(), same = left && calls[next].op.operator_name() == call.op.operator_name();
      if (same) {
        pair_calls(call, calls[next]);
        calls_.push_back(&calls[next++]);
        continue;
      }
      if (!is_contiguous_call(call)) {
        refuse(name_of(call) + " there, " + (left ? name_of(calls[next]) : "nothing more") + " here");
      }
      calls_.push_back(nullptr);
      number(call.results[0].value()) = number(call.arguments[0].value());
    }
    if (next < calls.size()) refuse("nothing more there, " + name_of(calls[next]) + " here");
    const ArgumentList &ours = base_.recording.outputs, &theirs = other_.recording.outputs;
    if (ours.size() != theirs.size()) refuse("another number of outputs");
    pair_arguments(Argument(ours), Argument(theirs), "the module");
  }

  std::vector<const RecordedCall*> take_calls() { return std::move(calls_); }
  std::vector<ValueId> take_numbers() { return std::move(numbers_); }

 private:
  ValueId& number(ValueId base) { return numbers_[static_cast<size_t>(base)]; }

  void pair_calls(const RecordedCall& ours, const RecordedCall& theirs) {
    for (size_t i = 0; i < ours.arguments.size(); ++i) {
      pair_arguments(ours.arguments[i], theirs.arguments[i], name_of(ours));
    }
    for (size_t i = 0; i < ours.results.size(); ++i) pair_results(ours.results[i], theirs.results[i], name_of(ours));
  }

  void pair_arguments(const Argument& ours, const Argument& theirs, const std::string& where) {
    if (ours.data.index() != theirs.data.index()) refuse(where + " gets an argument of another kind");
    if (ours.is_list()) {
      if (ours.list().size() != theirs.list().size()) refuse(where + " gets a list of another length");
      for (size_t i = 0; i < ours.list().size(); ++i) pair_arguments(ours.list()[i], theirs.list()[i], where);
    }
    if (!ours.is_value()) return;
    ValueId& known = number(ours.value());
    if (known == ValueId::none) known = theirs.value();  // a tensor that no op made, seen for the first time
    if (known != theirs.value()) refuse(where + " gets another tensor");
  }

  void pair_results(const Argument& ours, const Argument& theirs, const std::string& where) {
    if (ours.data.index() != theirs.data.index()) refuse(where + " gives a result of another kind");
    if (ours.is_list()) {
      if (ours.list().size() != theirs.list().size()) refuse(where + " gives a list of another length");
      for (size_t i = 0; i < ours.list().size(); ++i) pair_results(ours.list()[i], theirs.list()[i], where);
    }
    if (ours.is_value()) number(ours.value()) = theirs.value();
  }

  [[noreturn]] void refuse(const std::string& what) const {
    if (!number_read_.empty())
      throw_error(ErrorKind::unsupported, "the module reads a number out of a tensor (", number_read_,
                  "), and what it does next depends on it: ", what,
                  ". A program has one path; choose with where(), or keep the branch outside of the module");
    if (other_.sizes == base_.sizes)
      throw_error(ErrorKind::unsupported, "the module does something else when its inputs hold other values: ", what,
                  ". A program has one path; choose with where(), or keep the branch outside of the module");
    throw_error(ErrorKind::unsupported, "the module does something else at ", print_sizes(other_.sizes), " than at ",
                print_sizes(base_.sizes), ": ", what,
                ". Keep that dimension fixed, narrow its range, or replace the loop or branch by an op");
  }

  const ModuleRun& base_;
  const ModuleRun& other_;
  std::vector<const RecordedCall*> calls_;
  std::vector<ValueId> numbers_;
  std::string number_read_;  // the last op that gave C++ a number
};

}  // namespace

AlignedRecordings align_recordings(const std::vector<ModuleRun>& runs) {
  AlignedRecordings aligned;
  aligned.base = &*std::max_element(runs.begin(), runs.end(), [](const ModuleRun& left, const ModuleRun& right) {
    return left.recording.calls.size() < right.recording.calls.size();
  });
  for (const ModuleRun& run : runs) {
    Aligner aligner(*aligned.base, run);
    aligner.run();
    aligned.calls.push_back(aligner.take_calls());
    aligned.numbers.push_back(aligner.take_numbers());
  }
  return aligned;
}

}  // namespace lissome
