#include "formats/perfetto/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "core/units.h"
#include "core/utf8.h"
#include "formats/perfetto/costs.h"

namespace culprit::perfetto {

namespace {

constexpr std::string_view kKernelModule = "[kernel]";
constexpr std::size_t kMostPath = 4096;

template <class Map>
auto found_in(const Map& map, std::uint64_t number) {
  const auto it = map.find(number);
  return it == map.end() ? typename Map::mapped_type{} : it->second;
}

std::string_view last_part(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

void StackTables::clear() {
  reset(functions);
  reset(path_parts);
  reset(mappings);
  reset(frames);
  reset(stacks);
  period = 0;
  clock = true;
}

void Stacks::intern(StackTables& tables, const proto::InternedData& data) {
  const auto text = [&](const std::string& bytes) { return builder_.intern(repair_utf8(bytes)); };
  const auto number = [](int size) { return static_cast<std::uint64_t>(size); };
  expansion_.spend(kNamedCost * (number(data.function_names_size()) + number(data.mapping_paths_size()) +
                                 number(data.mappings_size()) + number(data.frames_size())));
  for (const proto::InternedString& entry : data.function_names()) tables.functions[entry.iid()] = text(entry.str());
  for (const proto::InternedString& entry : data.mapping_paths()) tables.path_parts[entry.iid()] = text(entry.str());
  for (const proto::Mapping& mapping : data.mappings()) {
    std::string path;
    for (const std::uint64_t part : mapping.path_string_ids()) {
      const std::string_view name = builder_.trace().strings[found_in(tables.path_parts, part)];
      if (path.size() + name.size() > kMostPath) break;
      // A path that is one text has its slashes already.
      if (mapping.path_string_ids_size() > 1) path += '/';
      path += name;
    }
    expansion_.spend(path.size());
    tables.mappings[mapping.iid()] = builder_.intern(path);
  }
  for (const proto::Frame& frame : data.frames()) {
    StackTables::Code code;
    code.module = found_in(tables.mappings, frame.mapping_id());
    code.function = found_in(tables.functions, frame.function_name_id());
    const std::string_view module = builder_.trace().strings[code.module];
    code.kernel = frame.kind() == proto::Frame::KIND_KERNEL || module == kKernelModule || module == "/kernel";
    if (code.function == 0) {
      const std::string_view file = last_part(module);
      code.function =
          builder_.intern(file.empty() ? std::string("[unknown]") : fmt::format("{}+{:#x}", file, frame.rel_pc()));
    }
    tables.frames[frame.iid()] = code;
  }
  for (const proto::Callstack& stack : data.callstacks()) {
    expansion_.spend(kNamedCost * (1 + number(stack.frame_ids_size())));
    std::uint32_t innermost = kNone;
    for (const std::uint64_t id : stack.frame_ids()) {
      const auto known = tables.frames.find(id);
      if (known == tables.frames.end()) {
        builder_.losses().add(LossReason::argument_invalid);
        continue;
      }
      innermost = builder_.frame({innermost, known->second.function, known->second.module, known->second.kernel});
    }
    tables.stacks[stack.iid()] = innermost;
  }
}

void Stacks::set_defaults(StackTables& tables, const proto::PerfSampleDefaults& defaults) {
  using Timebase = proto::PerfEvents::Timebase;
  const Timebase& base = defaults.timebase();
  tables.clock = base.event_case() == Timebase::EVENT_NOT_SET ||
                 (base.event_case() == Timebase::kCounter && (base.counter() == proto::PerfEvents::SW_CPU_CLOCK ||
                                                              base.counter() == proto::PerfEvents::SW_TASK_CLOCK));
  tables.period = 0;
  if (!tables.clock) return;
  if (base.interval_case() == Timebase::kFrequency && base.frequency() > 0 && base.frequency() <= kSecond)
    tables.period = static_cast<Ns>((kSecond + base.frequency() / 2) / base.frequency());
  if (base.interval_case() == Timebase::kPeriod)
    tables.period = static_cast<Ns>(std::min(base.period(), std::uint64_t{kSecond}));
}

void Stacks::sample(const StackTables& tables, const proto::PerfSample& sample, Ns at) {
  if (sample.has_kernel_records_lost()) {
    builder_.losses().add(LossReason::packets_lost, sample.kernel_records_lost());
    return;
  }
  if (sample.has_sample_skipped_reason()) return builder_.losses().add(LossReason::packets_lost);
  expansion_.spend(kSampleCost);
  StackSample row;
  row.at = at;
  row.time = tables.period;
  row.track = builder_.track({.pid = sample.pid(), .tid = sample.tid()});
  row.kind = tables.clock ? StackSample::Kind::on_cpu : StackSample::Kind::other;
  if (sample.has_callstack_iid()) {
    const auto stack = tables.stacks.find(sample.callstack_iid());
    if (stack == tables.stacks.end())
      builder_.losses().add(LossReason::packets_lost);
    else
      row.frame = stack->second;
  }
  builder_.add(row);
}

std::uint32_t Stacks::folded(std::string_view text) {
  std::uint32_t innermost = kNone;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
    expansion_.spend(kNamedCost);
    innermost = builder_.frame({innermost, builder_.intern(name.empty() ? "[unknown]" : name), 0, false});
  }
  return innermost;
}

}  // namespace culprit::perfetto
