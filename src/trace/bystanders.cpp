#include "trace/bystanders.h"

#include <algorithm>
#include <map>
#include <string>

#include "trace/counter_samples.h"

namespace culprit {

std::vector<model::Bystander> bystanders(const Trace& trace, Ns begin, Ns end) {
  const StringId other = trace.strings.find("other.cpu", kNone);
  std::map<std::string, double> by_name;
  for (const CounterSeries& series : trace.counters)
    if (series.name == other)
      if (const auto mean = mean_within(series.samples, begin, end))
        // Until its first sample it took none.
        by_name[std::string(trace.strings[trace.processes[series.process].name])] +=
            *mean * static_cast<double>(end - std::max(begin, series.samples.front().at)) /
            static_cast<double>(end - begin);
  std::vector<model::Bystander> list;
  list.reserve(by_name.size());
  for (const auto& [name, cpus] : by_name) list.push_back({name, cpus});
  std::ranges::stable_sort(list, [](const auto& a, const auto& b) { return a.cpus > b.cpus; });
  return list;
}

}  // namespace culprit
