#include "model/settings.h"

#include <algorithm>

namespace culprit::model {

namespace {

struct Known {
  std::string_view prefix;
  std::string_view noun;
  std::string_view detail;
  bool everywhere = false;  ///< whoever tells anything of the machine and the program tells it
};
constexpr std::array kKnown = {Known{"env.target.option.", "The option --", "option"},
                               Known{"env.target.variable.", "The variable ", "variable"},
                               Known{"env.target.package.", "The package ", "version"},
                               Known{"env.target.library.", "The library ", "version"},
                               Known{"env.target.python.version", "Python", "version", true},
                               Known{"env.gpu.driver", "The driver of the devices", "version", true},
                               Known{"env.kernel.release", "The kernel", "version", true}};

constexpr std::array<std::string_view, 4> kHarmless = {"env.target.option.port", "env.target.option.seed",
                                                       "env.target.option.random-seed",
                                                       "env.target.variable.VLLM_PORT"};

}  // namespace

std::vector<SettingChange> settings_that_differ(const std::vector<EnvironmentChange>& environment) {
  std::vector<SettingChange> all;
  for (const Known& known : kKnown)
    for (const EnvironmentChange& fact : environment) {
      if (!fact.key.starts_with(known.prefix) || std::ranges::find(kHarmless, fact.key) != kHarmless.end()) continue;
      if (known.everywhere && std::ranges::any_of(fact.value, &std::string::empty)) continue;
      SettingChange& setting = all.emplace_back(
          SettingChange{std::string(known.noun) + fact.key.substr(known.prefix.size()), known.detail, fact.value});
      for (std::string& value : setting.value)
        if (value.empty()) value = "none";
    }
  return all;
}

}  // namespace culprit::model
