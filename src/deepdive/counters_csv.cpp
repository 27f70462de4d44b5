#include "deepdive/counters_csv.h"

#include <fmt/format.h>

#include <iterator>

#include "deepdive/csv_names.h"

namespace culprit::deepdive {

std::string write_counters_csv(const CounterLog& log) {
  std::string out = "counter_name,timestamp,value,hostname\n";
  for (const LoggedSample& sample : log.samples) {
    append_csv_name(out, log.texts[sample.counter]);
    fmt::format_to(std::back_inserter(out), ",{:.6f},{:.6f},", sample.time_us, sample.value);
    append_csv_name(out, log.texts[sample.host]);
    out += '\n';
  }
  return out;
}

}  // namespace culprit::deepdive
