// What the runners over the parity cases have in common: finding folders, running a program as the exporter ran the
// module.
#pragma once

#include <exception>
#include <set>
#include <string>
#include <vector>

#include "agreement.h"
#include "case_reader.h"
#include "lissome/program.h"

namespace lissome {

constexpr int kExporterThreads = 2;

// The cases below `parent`, sorted; all of them when none is wanted by name.
std::vector<std::string> list_case_folders(const std::string& parent, const std::set<std::string>& wanted);

std::vector<c10::IValue> copy_values(const std::vector<c10::IValue>& values);

// Interprets with the case's seed; a program that writes to its inputs writes to `inputs`.
std::vector<c10::IValue> run_program(const Program& program, const ParityCase& parity, std::vector<c10::IValue> inputs,
                                     const InterpretOptions& options);

// The program with buffers and constants of its own: what a run writes to them, by state writes or in place, leaves
// others alone.
Program copy_state(const Program& program);

// Throws internal, naming `what`, when they do not agree.
void require_agreement(const std::string& what, const Agreement& agreement);

// The message without libtorch's backtrace.
std::string describe_failure(const std::exception& error);

}  // namespace lissome
