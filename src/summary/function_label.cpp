#include "summary/function_label.h"

#include "cycles/name_hints.h"
#include "profile/function_name.h"

namespace culprit::summary {

std::string function_label(SliceClass slice_class, std::string_view name) {
  if (is_gpu_work(slice_class)) return std::string(name);
  if (cycles::marker_rank(name) >= cycles::MarkerRank::step_word && cycles::iteration_number(name))
    return cycles::without_iteration_number(name);
  return without_addresses(name);
}

bool is_profiler_span(std::string_view category, std::string_view name) {
  return category == "Trace" && name.starts_with("PyTorch Profiler");
}

}  // namespace culprit::summary
