// Launch logs for tests: by hand, or from the text tables "Kernel | Latency Tensor DRAM".
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "model/kernel_log.h"

namespace culprit::test {

inline model::KernelLaunch& add_launch(model::KernelLog& log, std::string_view name, Ns latency,
                                       float tensor = model::kUnknown, float dram = model::kUnknown) {
  model::KernelLaunch launch;
  launch.name = log.names.intern(name);
  launch.latency = latency;
  launch.tensor = tensor;
  launch.dram = dram;
  log.launches.push_back(launch);
  return log.launches.back();
}

inline model::KernelLog parse_launch_log(const std::string& path) {
  model::KernelLog log;
  log.source = model::KernelSource::text_log;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::size_t bar = line.find('|');
    if (bar == std::string::npos) continue;
    std::istringstream numbers(line.substr(bar + 1));
    Ns latency = 0;
    float tensor = 0;
    float dram = 0;
    numbers >> latency >> tensor >> dram;
    std::string name = line.substr(0, bar);
    name.erase(name.find_last_not_of(' ') + 1);
    add_launch(log, name, latency, tensor, dram);
  }
  return log;
}

}  // namespace culprit::test
