// The words by which functions are grouped, ordered and chosen: on the command line and in the library.
#pragma once

#include <map>
#include <string>

#include "summary/function_stats.h"
#include "summary/function_table.h"

namespace culprit::summary {

inline const std::map<std::string, GroupBy> kGroupNames = {
    {"name", GroupBy::name},  {"raw-name", GroupBy::raw_name}, {"short-name", GroupBy::short_name},
    {"kind", GroupBy::kind},  {"device", GroupBy::device},     {"stream", GroupBy::stream},
    {"rank", GroupBy::rank},  {"category", GroupBy::category}, {"cycle", GroupBy::cycle},
    {"phase", GroupBy::phase}};
inline const std::map<std::string, SortBy> kSortNames = {
    {"time", SortBy::time},     {"calls", SortBy::calls}, {"avg", SortBy::average}, {"min", SortBy::min},
    {"median", SortBy::median}, {"max", SortBy::max},     {"name", SortBy::name},   {"total", SortBy::time}};
inline const std::map<std::string, ClassSet> kClassNames = {
    {"gpu", kGpuWork},
    {"kernels", class_bit(SliceClass::kernel)},
    {"cpu_op", class_bit(SliceClass::cpu_op)},
    {"runtime", class_bit(SliceClass::runtime) | class_bit(SliceClass::driver)},
    {"python", class_bit(SliceClass::python)},
    {"annotation", class_bit(SliceClass::annotation)},
    {"functions", kFunctions},
    {"sched", class_bit(SliceClass::os_sched)},
    {"syscall", class_bit(SliceClass::syscall)},
    {"all", kAllClasses}};

/// Whether a trace holds anything but scheduling, system calls and disks.
bool marks_anything(const Trace& trace);
/// Whether it holds what threads did by the scheduler's account.
bool records_states(const Trace& trace);
/// The name of the classes that suit a trace: GPU work where there is any, else what the program marks, else its
/// states.
std::string usual_classes(const Trace& trace);

}  // namespace culprit::summary
