// NVML is opened at run time, with own declarations: a machine without a GPU has neither the library nor its header.
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "core/text.h"
#include "record/collector/kernel_text.h"
#include "record/environment/facts.h"

namespace culprit::record {

namespace {

constexpr unsigned kMostGpus = 64;

struct Library {
  explicit Library(const char* name) : handle(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle != nullptr) dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  /// Leaves `function` alone when there is no such symbol.
  template <class Function>
  void find(Function& function, const char* symbol) const {
    if (void* address = dlsym(handle, symbol)) std::memcpy(&function, &address, sizeof address);
  }
  void* handle = nullptr;
};

using Device = void*;

struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*power_limit)(Device, unsigned*) = nullptr;
  int (*default_power_limit)(Device, unsigned*) = nullptr;
  int (*max_clock)(Device, int, unsigned*) = nullptr;
  int (*application_clock)(Device, int, unsigned*) = nullptr;
  int (*persistence)(Device, int*) = nullptr;
  int (*compute_mode)(Device, int*) = nullptr;
  int (*mig)(Device, unsigned*, unsigned*) = nullptr;
  int (*ecc)(Device, int*, int*) = nullptr;
};

/// Milliwatts, MHz and the like: no fact when the call is not there or fails.
template <class Number>
void number_fact(std::vector<Fact>& facts, const std::string& key, int (*function)(Device, Number*), Device device) {
  Number value{};
  if (function != nullptr && function(device, &value) == 0) add_fact(facts, key, std::to_string(value));
}

void text_fact(std::vector<Fact>& facts, const std::string& key, int (*function)(Device, char*, unsigned),
               Device device) {
  std::array<char, 128> text{};
  if (function != nullptr && function(device, text.data(), static_cast<unsigned>(text.size()) - 1) == 0)
    add_fact(facts, key, text.data());
}

void device_facts(std::vector<Fact>& facts, const Nvml& nvml, unsigned index) {
  Device device = nullptr;
  if (nvml.device(index, &device) != 0) return;
  const std::string key = fmt::format("gpu{}.", index);
  text_fact(facts, key + "model", nvml.name, device);
  text_fact(facts, key + "uuid", nvml.uuid, device);
  number_fact(facts, key + "power_limit_mw", nvml.power_limit, device);
  number_fact(facts, key + "default_power_limit_mw", nvml.default_power_limit, device);
  constexpr int kSmClock = 1;
  constexpr int kMemoryClock = 2;
  for (const auto& [kind, name] : {std::pair{kSmClock, "sm_clock_mhz"}, {kMemoryClock, "memory_clock_mhz"}})
    for (const auto& [prefix, function] :
         {std::pair{"max_", nvml.max_clock}, std::pair{"application_", nvml.application_clock}}) {
      unsigned megahertz = 0;
      if (function != nullptr && function(device, kind, &megahertz) == 0)
        add_fact(facts, fmt::format("{}{}{}", key, prefix, name), std::to_string(megahertz));
    }
  number_fact(facts, key + "persistence", nvml.persistence, device);
  number_fact(facts, key + "compute_mode", nvml.compute_mode, device);
  unsigned mig = 0;
  unsigned mig_pending = 0;
  if (nvml.mig != nullptr && nvml.mig(device, &mig, &mig_pending) == 0)
    add_fact(facts, key + "mig", mig != 0 ? "on" : "off");
  int ecc = 0;
  int ecc_pending = 0;
  if (nvml.ecc != nullptr && nvml.ecc(device, &ecc, &ecc_pending) == 0)
    add_fact(facts, key + "ecc", ecc != 0 ? "on" : "off");
}

/// Why NVML says nothing; empty when it did.
std::string nvml_facts(std::vector<Fact>& facts) {
  const Library library("libnvidia-ml.so.1");
  if (library.handle == nullptr) {
    const char* why = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps one per thread
    return why != nullptr ? why : "libnvidia-ml.so.1 cannot be opened";
  }
  Nvml nvml;
  library.find(nvml.init, "nvmlInit_v2");
  library.find(nvml.shutdown, "nvmlShutdown");
  library.find(nvml.error_text, "nvmlErrorString");
  library.find(nvml.driver_version, "nvmlSystemGetDriverVersion");
  library.find(nvml.count, "nvmlDeviceGetCount_v2");
  library.find(nvml.device, "nvmlDeviceGetHandleByIndex_v2");
  library.find(nvml.name, "nvmlDeviceGetName");
  library.find(nvml.uuid, "nvmlDeviceGetUUID");
  library.find(nvml.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  library.find(nvml.default_power_limit, "nvmlDeviceGetPowerManagementDefaultLimit");
  library.find(nvml.max_clock, "nvmlDeviceGetMaxClockInfo");
  library.find(nvml.application_clock, "nvmlDeviceGetApplicationsClock");
  library.find(nvml.persistence, "nvmlDeviceGetPersistenceMode");
  library.find(nvml.compute_mode, "nvmlDeviceGetComputeMode");
  library.find(nvml.mig, "nvmlDeviceGetMigMode");
  library.find(nvml.ecc, "nvmlDeviceGetEccMode");
  if (nvml.init == nullptr || nvml.shutdown == nullptr || nvml.count == nullptr || nvml.device == nullptr)
    return "libnvidia-ml.so.1 lacks functions that every version has";
  if (const int error = nvml.init(); error != 0)
    return fmt::format("NVML does not start: {}",
                       nvml.error_text != nullptr ? nvml.error_text(error) : std::to_string(error));
  std::array<char, 128> version{};
  if (nvml.driver_version != nullptr && nvml.driver_version(version.data(), version.size() - 1) == 0)
    add_fact(facts, "gpu.driver", version.data());
  unsigned count = 0;
  if (nvml.count(&count) == 0) add_fact(facts, "gpu.count", std::to_string(count));
  for (unsigned i = 0; i < count && i < kMostGpus; ++i) device_facts(facts, nvml, i);
  nvml.shutdown();
  return {};
}

}  // namespace

std::vector<Fact> nvidia_facts(const std::string& root, std::vector<Sight>& sights) {
  std::vector<Fact> facts;
  const std::string proc = root + "/proc/driver/nvidia";
  const std::string version = read_text(proc + "/version", 4096).value_or("");
  std::string_view rest = version;
  add_fact(facts, "gpu.kernel_module", take_line(rest));
  std::size_t shown = 0;
  for (const std::string& slot : list_folder(proc + "/gpus", kMostGpus)) {
    const std::string text = read_text(fmt::format("{}/gpus/{}/information", proc, slot), 4096).value_or("");
    const std::size_t index = shown++;
    rest = text;
    while (!rest.empty()) {
      const std::string_view line = take_line(rest);
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      const std::string_view key = trim(line.substr(0, colon));
      const std::string_view value = line.substr(colon + 1);
      if (key == "Model") add_fact(facts, fmt::format("gpu{}.model", index), value);
      if (key == "GPU UUID") add_fact(facts, fmt::format("gpu{}.uuid", index), value);
      if (key == "Video BIOS") add_fact(facts, fmt::format("gpu{}.vbios", index), value);
    }
  }
  const std::string trouble = root.empty() ? nvml_facts(facts) : "not asked for another root";
  const bool nvml = trouble.empty();
  sights.push_back({"driver and limits of NVIDIA GPUs", nvml || !facts.empty(), nvml || !facts.empty() ? "" : trouble,
                    nvml || !facts.empty() ? "" : "install the NVIDIA driver on a machine with such a GPU"});
  return facts;
}

}  // namespace culprit::record
